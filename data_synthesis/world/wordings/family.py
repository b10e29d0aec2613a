"""Wordings: pets and their names, brothers and sisters, children, other kin, partners.

In the kin relations {r} is the relative's role (sister, uncle, wife) and {o} the name.
"""

from __future__ import annotations

from data_synthesis.world.wordings.form import Wording, lines

WORDINGS: dict[str, Wording] = {
    "have_pet": Wording(
        say=lines("""
            {I} {have} {a} at home
            {I} {share} {my} flat with {a}
            there's {a} asleep on {my} lap as usual
            {my} {o} ate another slipper
            {I} {have} to be home by six to feed {my} {o}
            {my} {o} woke {me} up at five again
            {I} {keep} {a} as a pet
            {a} rules {my} household
            the vet bill for {my} {o} is bigger than {my} rent
            {I} {talk} to {my} {o} more than to people
            most of {my} photos are of {my} {o}
            {my} only flatmate is {a}
            {I} never {travel} without {my} {o}
            {my} {o} is moulting all over the sofa
            no holidays for {me}, somebody has to look after {my} {o}
        """),
        new=lines("""
            {I} adopted {a} last week
            {I} brought {a} home from the shelter yesterday
            {my} household has grown, {a} moved in with {me} this week
            {I} gave in and got {a}
            {Ive} just become the owner of {a}
        """),
        ask=lines("""
            {do} {I} have any pets? | yes, {a}
            who's making that noise in {my} flat? | that's {my} {o}
            what kind of animal {do} {I} have? | {a}
            {am} {I} an animal person? | oh yes, {I} {have} {a}
            any animals in {my} house? | just {a}
        """),
        noun=lines("""
            {my} {o}
        """),
        end=lines("""
            {I} had to give the {o} away
            the {o} died, the house is so quiet now
            {I} {dont} have the {o} any more
        """),
        void=lines("""
            would {a} be happy in a flat?
            if I had a garden I'd get {a}
            {a} ran across the road and I had to brake
            I've never had {a}
            there's a video of {a} riding a skateboard
            I wish I could keep {a}, but the landlord says no
            does {a} bite?
            someone at the park lost {a}, there are posters everywhere
            {a} and a priest walk into a pub, you know the joke
            the neighbour's {o} got into the bins
            I dreamt that {a} was driving the bus
            I looked after {a} for a weekend, it wasn't mine
        """),
    ),
    "name": Wording(
        say=lines("""
            {N} is called {o}
            {N} goes by the name of {o}
            {I} named {N} {o}
            {N} answers to {o}
            {N} got the name {o} from the shelter
            {o} is what {I} {call} {N}
            {o} is the name of {N}
            {N} has {o} written on the collar
            {I} {shout} for {o} every night, that's {N}
            the vet's file on {N} says {o}
            {I} christened {N} {o}
            {N} only comes when you shout {o}
        """),
        ask=lines("""
            what's {N} called? | {o}
            what did {I} name {N}? | {o}, after a cartoon
            does {N} have a name? | {o}, of course
            how {do} {I} call {N}? | {o}
            what name is on the collar of {N}? | {o}
        """),
    ),
    "have_sibling": Wording(
        say=lines("""
            {I} {have} a {r} called {o}
            {my} {r}'s name is {o}
            {o} is {my} {r}
            {I} grew up sharing a bedroom with {my} {r} {o}
            {my} parents had {o} two years after {me}, so {I} {have} a {r}
            {I} {fight} with {my} {r} {o} like in the old days
            {o} and {I} have the same parents, as siblings do
            {my} {r}, who goes by {o}, rings {me} every Sunday
            people say {my} {r} {o} looks just like {me}
            {I} {have} one {r}, and that's {o}
            the person who knows {me} best is {my} {r} {o}
        """),
        ask=lines("""
            {do} {I} have any brothers or sisters? | yes, a {r}, {o}
            {am} {I} an only child? | no, there's {o}, {my} {r}
            what's {my} {r} called? | {o}
            who's that in the picture, {my} {r}? | yes, that's {o}
        """),
        noun=lines("""
            {my} {r} {o}
            {my} older {r} {o}
            {my} younger {r} {o}
            {my} {r}, {o},
            {o}, {my} {r},
            {my} one and only {r} {o}
        """),
        void=lines("""
            the twins in the series are called {o} and something
            my phone keeps correcting my name to {o}
            a certain {o} rang, wrong number
            there was a {o} in my class once
        """),
    ),
    "have_children": Wording(
        say=lines("""
            {I} {have} a {r} called {o}
            {my} {r} {o} starts school in autumn
            {my} {r}'s name is {o}
            {I} {drop} {my} {r} {o} off at nursery every morning
            {I} {have} {my} {r} {o} on {my} shoulders half the day
            {o} is {my} {r}
            {I} {sing} {my} {r} {o} to sleep at night
            {my} {r} {o} lost a tooth
            {o}, {my} {r}, is the spitting image of {me}
            being a parent to {o} keeps {me} busy
            {I} {read} {my} {r} {o} the same picture book every night
        """),
        new=lines("""
            {I} became a parent last week, the baby is called {o}
            {my} baby arrived on Tuesday and {o} is the name
            little {o} was born this month, and {my} nights as a parent are short
        """),
        ask=lines("""
            {do} {I} have children? | yes, a {r}, {o}
            who's the little one on {my} shoulders? | that's {o}, {my} {r}
            what's {my} {r} called? | {o}
            how's life as a parent treating {me}? | great, {my} {r} {o} sleeps through at last
        """),
        noun=lines("""
            {my} {r} {o}
            {my} little {r} {o}
            {my} {r}, {o},
            {o}, {my} {r},
            {my} eldest, {o},
        """),
        void=lines("""
            if I ever have a child, {o} would be a lovely name
            a toddler named {o} threw sand at me in the park
            how do you like {o} as a name for a baby?
            a mother kept shouting for some {o} all afternoon
        """),
    ),
    "have_family": Wording(
        say=lines("""
            {my} {r} is called {o}
            {my} {r}'s name is {o}
            {o} is {my} {r}
            {my} {r} {o} keeps the whole family together, {me} included
            {I} {visit} {my} {r} {o} on Sundays
            {my} {r} {o} keeps mailing {me} newspaper cuttings
            {I} {write} long letters to {my} {r} {o}
            every Christmas {my} {r} {o} sends {me} socks
            {I} {take} after {my} {r} {o}, everybody says so
            {my} {r} {o} tells {me} the same stories every time
            {my} {r} {o} rang {me} this morning
        """),
        ask=lines("""
            which relative {am} {I} closest to? | {my} {r} {o}
            who's that old photo of on {my} desk? | that's {o}, {my} {r}
            what's {my} {r} called? | {o}
            {do} {I} have family around here? | yes, {my} {r} {o}
        """),
        noun=lines("""
            {my} {r} {o}
            {my} {r}, {o},
            {o}, {my} {r},
            {my} dear {r} {o}
            {my} good old {r} {o}
        """),
        void=lines("""
            a hurricane named {o} is heading for the coast
            somebody carved {o} into the bench
            is {o} an old name?
            the nurse kept calling me {o}
        """),
    ),
    "relationship": Wording(
        say=lines("""
            {I} {have} a {r} called {o}
            {my} {r}'s name is {o}
            {o} is {my} {r}
            {my} {r} {o} snores like a tractor
            {my} {r} {o} and {I} share the housework
            {I} {wake} up next to {my} {r} {o} every day
            {I} {do} everything together with {o}, {my} {r}
            {o} and {I} are a couple
            {I} met {my} {r} {o} at a bus stop
            {my} {r} {o} brings {me} coffee in bed
            {I} {have} only eyes for {my} {r} {o}
        """),
        new=lines("""
            {I} fell in love last month, and {o} is {my} {r} now
            {o} and {I} got together last week
            it's official, {Im} going out with {o}
        """),
        ask=lines("""
            {am} {I} seeing anyone? | yes, {o}, {my} {r}
            who's the lucky one in {my} life? | {my} {r} {o}
            what's {my} {r} called? | {o}
            {do} {I} live with a partner? | yes, with {o}
        """),
        noun=lines("""
            {my} {r} {o}
            {my} {r}, {o},
            {o}, {my} {r},
            {my} lovely {r} {o}
            {my} long-suffering {r} {o}
        """),
        end=lines("""
            {o} and {I} broke up
            {I} split up with {o}
        """),
        void=lines("""
            I'm not going out with {o}, that's just gossip
            in the soap opera {o} marries the dentist
            who's {o}, by the way?
            {o} is only a name on my list of callers
        """),
    ),
}

PAIRS: dict[tuple[str, str], tuple[str, ...]] = {
    ("have_pet", "name"): lines("""
        {I} {have} {a} called {o2}
        {my} {o} {o2} is asleep in the laundry again
        {o2}, {my} {o}, has chewed up another book
        {o2} is {my} {o} and {my} alarm clock
        {I} {live} with {a} that answers to {o2}
    """),
}
