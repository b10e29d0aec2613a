"""The simulated persona world: people, lives that change, dialogues in which that comes up, and gold for what was said.

`life` is the model of a life (facts with validity, events); `wordings` says facts in many ways; `script` makes
dialogues; `rows` cuts dataset rows. `simulate` in the room above writes the folder.

What counts as a triplet (subject, relation, object)
----------------------------------------------------
- A fact that the row's `turns` assert as true now. `context` only helps to resolve "she" or "same here"; what it
  asserts itself is not gold. `previous_profession` is by its nature about the past.
- None for questions, wishes, suppositions, negations, facts that are over, hearsay that is disowned, dreams, jokes,
  films, and strangers (a man on the train, somebody's neighbour). `want_do` is the one relation that holds a plan or
  a dream.
- A correction ("Lyon, no wait, Nantes") yields the corrected value only.
- A question that is answered with yes counts as asserted; answered with no, it yields nothing; answered with "that's my
  sister Ana", it is a fact about Ana.
- "Same here" asserts the fact of the turn before for whoever says it.
- A possessive asserts possession ("my ferret is called Biscuit": have_pet and name), an apposition asserts kinship ("my
  sister Ana lives in Ghent": have_sibling and live_in_citystatecountry), both in assertions by the owner only.
  Kinship is a triplet only where the name is said; friends, flatmates, colleagues and neighbours have no relation of
  their own.

Subjects: first and second person become the speaker's label ("Mia"). A third person is called by the name where the row
names them up to that point ("Ana"), and "Mia's sister" where only the role is said. Pets: "Mia's ferret".
Objects: copied from the text without article. Order: of the objects in the text. Evidence: ids of the turns that say
it.
"""
