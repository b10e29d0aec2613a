"""Everything around the facts: openers, trailers, connectors, small talk, prompts, reactions, corrections,
confirmations.

None of these lines states a fact of any relation. Each list is dealt by its text: some lines for the test split alone,
the others for train and dev.
"""

from __future__ import annotations

import hashlib
from functools import cache

from data_synthesis.world.wordings import chatter
from data_synthesis.world.wordings.form import lines

TEST_SHARE = 0.4

OPENERS = lines("""
    well,
    oh,
    you know what?
    funny you should ask:
    guess what:
    so,
    to be honest,
    by the way,
    speaking of which,
    before I forget:
    let me tell you,
    honestly,
    believe it or not,
    here's something new for you:
    not that it matters, but
    since we're on the subject,
    I don't think I told you, but
    hm, let me see,
    okay, confession time:
    laugh if you want, but
    the thing is,
    as you may know,
    it's no secret that
    I must say,
    fun fact:
    look,
    ha,
    if you must know,
    right, news from my side:
    between you and me,
    where do I begin?
    all I can say is that
    in case you were wondering,
    truth be told,
    first things first:
    brace yourself:
    for the record,
    let's see,
    as it happens,
    I should have said so earlier, but
""")
ANSWER_OPENERS = lines("""
    well,
    oh,
    hm, let me see,
    to be honest,
    honestly,
    ha,
    let's see,
    easy:
    good question,
    good that you ask,
    no secret:
    quick answer:
    short and sweet:
    if you must know,
    that's easy,
    guess three times:
    um,
    glad you asked:
""")
QUESTION_OPENERS = lines("""
    tell me,
    so,
    just curious:
    may I ask,
    one question:
    remind me,
    I've been meaning to ask,
    by the way,
    now,
    if I may ask,
    out of interest,
    say,
    here's a question:
    what I always wanted to know:
    while I think of it,
    let me ask you this:
    not to be nosy, but
    help me out here,
    I keep forgetting to ask:
    come on, tell us,
""")
TRAILERS = lines("""
    , believe it or not
    , by the way
    , you know
    , and that's that
    , for what it's worth
    , just so you know
    , to cut a long story short
    , no kidding
    , if that's any help
    , what can I say
    , as everybody knows
    , in case you forgot
    , and I say that without shame
    , strange as it sounds
    , there you have it
    , so now you know
    , I swear
    , like it or not
    , and why not
    , that's the whole story
    , simple as that
    , make of that what you will
    , don't tell the others
    , for better or worse
    , hand on heart
""")
JOINS = lines("""
    {x}, and {y}
    {x}; {y}
    {x}. Also, {y}
    {x}. Apart from that, {y}
    {x}, plus {y}
    {x}. Oh, and {y}
    {x}. On top of that, {y}
    {x}, not to mention that {y}
    {x}, and to top it off, {y}
    {x}, and besides, {y}
    first, {x}, and second, {y}
    {x} – and while I'm at it, {y}
    {x}. Besides, {y}
    {x}. What else? {y}
    {x}. Next item: {y}
    {x}. And another thing: {y}
    {x}, and as if that weren't enough, {y}
    two things: {x}, and {y}
""")
CONTRASTS = lines("""
    {x}, whereas {y}
    {x}, while {y}
    {x}, but {y}
    {x}. {y}, on the other hand
    {x}, and meanwhile {y}
    {x}; as for the other side, {y}
    {x}. Different story here: {y}
    {x}, yet {y}
    {x}. By contrast, {y}
""")
TELLINGS = lines("""
    I remember that {x}
    as you told me, {x}
    last time you said that {x}
    I know that {x}
    I haven't forgotten that {x}
    everybody knows that {x}
    I told my friends that {x}
    the other day it came up that {x}
    if there's one thing I remember, it's that {x}
    it's good to know that {x}
    I wrote it down: {x}
    I still smile at the fact that {x}
    it stuck in my mind that {x}
    I was telling my hairdresser that {x}
    you mentioned that {x}
    how could I forget that {x}?
    I'm well aware that {x}
    it says in my notes that {x}
    we all know that {x}
""")
CORRECTIONS = lines("""
    {w}, no wait, {o}
    {w}, sorry, I mean {o}
    {w} – scratch that, {o}
    {w}, or rather, {o}
    {w}… no, {o}, silly me
    {w}, no no, {o}, what am I saying
    {w}, pardon, {o}
    {w}, er, not {w}, {o}
    {w} – I keep saying that, it's {o}, of course
    {w}, correction, {o}
    {w}, hang on, that's wrong, {o}
    {w}, I always mix those up, {o}
""")
SELF_REPAIRS = lines("""
    sorry, not {w}, {o}
    did I say {w}? I meant {o}
    no wait, it's {o}, not {w}
    I misspoke, {o} is right
    {o}, I mean; {w} is somebody else's story
    let me correct myself: {o}
    forget {w}, I should have said {o}
    oops, make that {o}
    wrong word, {o} is what I was looking for
    hang on, {o}, I always mix those two up
    pardon me, {o}
    actually, no, {o}
    I take that back: {o}
    my mistake, {o} it is
    not {w} at all, {o}, sorry
    {o}, to be correct
""")
ECHOES = lines("""
    {w}, really?
    Did you say {w}?
    {w}? That's news to me.
    {w}! I would never have guessed.
    Wait, {w}?
    Hm, {w}, you say.
    {w}, how interesting.
    {w}? Are you sure?
    Oh, {w}!
    {w}, you mean?
    Hang on, {w}?
    You said {w}, didn't you?
""")
OBJECTIONS = lines("""
    {o}, actually, not {w}
    no, no, {o}
    close, but it's {o}
    you're mixing things up, it's {o}
    wrong, {o} is the answer
    not {w}, {o}!
    {w}? No, {o}
    almost: {o}, never {w}
    that must be someone else, in my case it's {o}
    let me put you right: {o}
    it's {o}, in fact
    nearly, only that it's {o}
    swap {w} for {o} and you're right
    sorry, but {o} would be correct
    {o}! Where did you get {w} from?
""")
CONFIRMATIONS = lines("""
    yes, exactly
    that's right
    yep, still the case
    correct, well remembered
    you've got it
    indeed, nothing has changed there
    quite so, well guessed
    absolutely
    true
    spot on
    sure, same as ever
    guilty as charged
    yes, that hasn't changed
    right you are
    one hundred per cent
    I couldn't have put it better
    yes, you remembered
    that's me all over
    still true today
    yes, why?
    you have a good memory
""")
DENIALS = lines("""
    no, that's not true
    no, you must be thinking of someone else
    not at all, who told you that?
    nope, not any more
    no, that was ages ago and it's over
    wrong guess, I'm afraid
    no, never
    that's just a rumour
    I'm afraid not
    not me, no
    no, no, you've got that wrong
    sadly no
    of course not
    no, where did you get that idea?
    no, not in a hundred years
    who put that idea into your head?
    no, it has never been like that
    you must have dreamt that
    not that I know of
    no, you made that up
""")
AGREEMENTS = lines("""
    same here
    me too, I'm exactly the same
    just like me, then
    that makes two of us
    ditto
    you and me both
    I could say the same about myself
    funny, it's the very same with me
    then we have that in common
    snap, no difference here
    likewise, word for word
    it's no different with me
    I can only say: me as well
    then there are two of us
    exactly my case
    we're twins, it's identical with me
    as if you were talking about me
    you took the words out of my mouth, I'm no different
    me as well, to the letter
""")
TURNABOUTS = lines("""
    And you?
    What about you?
    How about yourself?
    And in your case?
    Your turn now.
    What's your answer to that?
    And what would you say?
    How is it with you?
    And on your side of the table?
""")
COUNTERS = lines("""
    {o} in my case
    for me it's {o}
    {o} here
    mine would be {o}
    I'd have to say {o}
    in my case, {o}
    with me, it's {o}
    {o}, since you ask
    my answer is {o}
    {o} is mine
    {o} for my part
    I would answer {o}
    as far as I'm concerned, {o}
    well, mine is {o}
    on my side it's {o}
    put me down for {o}
    if you ask me that, {o}
""")
LEADS = lines("""
    am I right that {x}?
    is it true that {x}?
    do I remember correctly that {x}?
    tell me, is it so that {x}?
    somebody told me that {x}, is that so?
    have I got this right, {x}?
    let me check: {x}, yes or no?
    so {x}, is that correct?
    is it still the case that {x}?
    would it be fair to say that {x}?
    can I take it that {x}?
    my notes say that {x}, correct?
    is it really the case that {x}?
    would I be right in thinking that {x}?
    did I hear correctly that {x}?
    just to be sure: {x}?
    someone mentioned that {x}, any truth in that?
    quick check: is it so that {x}?
""")
DOUBTS = lines("""
    some people say that {x}, but it isn't so
    it's a rumour that {x}, nothing more
    nobody can claim that {x}
    I never said that {x}
    it isn't true that {x}
    don't believe anyone who tells you that {x}
    imagine for a second that {x}
    what if {x}?
    suppose {x}, would that change anything?
    I dreamt that {x}, then the alarm rang
    the fortune teller swore that {x}, what nonsense
    the form says that {x}, which is a mistake
    in the sketch I play a character, and {x}, but only on stage
    for a joke I told the waiter that {x}, a pure invention
    it would be a lie to say that {x}
    if it were true that {x}, I would have told you
    my horoscope claims that {x}, which is rubbish
    just because it's written there doesn't mean that {x}
    pretend for a moment that {x}
    the computer insists that {x}, clearly an error
    in the novel I'm writing the hero says: {x}
    it's not as if {x}
    let's assume that {x}, purely in theory
    some website believes that {x}, no clue why
""")
REMARKS = lines("""
    I'm only thinking aloud
    funny how the mind wanders
    that's all I wanted to say
    but never mind
    just a thought
    it only crossed my mind
    don't ask me why I bring it up
    what a strange world
    just saying
    and so on
    no idea why I mention it
    that kept me amused for a while
""")


DEFLECTIONS = lines("""
    no, that's {x}, not me
    you're thinking of {x}
    not me, {x}
    that would be {x}
    wrong person, you mean {x}
    that's not me, that's {x}
    you're confusing me with {x}
    it's {x} you have in mind
    mistaken identity, that's {x}
    I'm not the one, {x} is
    no, but it's true of {x}
    not true of me, only of {x}
""")


@cache
def dealt(name: str, split: str) -> tuple[str, ...]:
    """The lines of one list (OPENERS, FILLERS, ...) that a split may use."""
    everything: tuple[str, ...] = globals().get(name) or getattr(chatter, name)
    ordered = sorted(everything, key=lambda line: hashlib.sha256(line.encode()).hexdigest())
    cut = round(TEST_SHARE * len(ordered))
    chosen = set(ordered[:cut] if split == "test" else ordered[cut:])
    return tuple(line for line in everything if line in chosen)
