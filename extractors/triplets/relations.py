"""Relation names: how they are normalised, their aliases, and the PersonaExt vocabulary.

Source: the relation inventory of PersonaExt (PAED) as its README and schema list it, with the one typo in it
(`have_chidren`) mapped to its right form. A relation is written in lower case with underscores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

ALIASES: dict[str, str] = {
    "have_chidren": "have_children",
    "have_child": "have_children",
    "has_children": "have_children",
    "has_pet": "have_pet",
    "has_sibling": "have_sibling",
    "has_family": "have_family",
    "has_vehicle": "have_vehicle",
    "never_do_do_not_drink": "do_not_drink",
    "never_do_do_not_eat": "do_not_eat",
    "like_sport": "like_sports",
    "hobby": "has_hobby",
    "profession": "has_profession",
    "lives_in": "live_in_general",
    "live_in": "live_in_general",
}

_GROUPS = """
diet allergy_to scared_of worry_about never_do do_not_drink do_not_eat do_not_do doing
have_no have_no_family have_no_children have_no_sibling used_to belief
dislike dislike_color dislike_food dislike_drink dislike_read dislike_subject dislike_job dislike_sport
dislike_activity dislike_animal dislike_music weakness want_no not_want_do
place_origin live_in_citystatecountry live_in_general live_with nationality race
employed_by_company employed_by_general pre_employed_by_company industry has_profession previous_profession
job_status work_schedule teach
school_status has_degree attend_school
like_general like_character like_color like_food like_drink like_animal like_movie like_music like_read like_sports
like_watching like_activity like_goto like_subject has_hobby has_ability member_of collect
want_do want_job want
favorite favorite_food favorite_color favorite_book favorite_movie favorite_music favorite_music_artist
favorite_activity favorite_drink favorite_show favorite_place favorite_hobby favorite_season favorite_animal favorite_sport
own have have_pet have_sibling have_children have_family have_vehicle
health_status physical_attribute misc_attribute name has_age marital_status relationship get_along fall_out gender
sexual_orientation international_exp raised_by other character
"""
PERSONAEXT: tuple[str, ...] = tuple(_GROUPS.split())


def normalise_relation(name: str, vocabulary: Iterable[str] = ()) -> str:
    """`Has Pet`, `has-pet` and `hasPet` become `have_pet`: lower case, underscores, then the alias table.

    A name that the vocabulary itself holds is never replaced by an alias.
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    plain = re.sub(r"[^\w]+", "_", words.casefold()).strip("_")
    return plain if plain in set(vocabulary) else ALIASES.get(plain, plain)
