"""Wordings: what people love, cannot stand, do for fun and fear."""

from __future__ import annotations

from data_synthesis.world.wordings.form import Wording, lines

WORDINGS: dict[str, Wording] = {
    "like_food": Wording(
        say=lines("""
            {I} {love} {o}
            {I} could eat {o} every single day
            {o} {is} {my} idea of comfort food
            nothing makes {me} happier than a plate of {o}
            {I} always {order} {o} when {it} {is} on the menu
            {my} last meal would have to be {o}
            {I} {have} a soft spot for {o}
            for {my} birthday {I} only ever {ask} for {o}
            {o} {is} {my} weakness, {I} never {leave} any on the plate
            you can bribe {me} with {o}
            {I} {cook} {o} at least once a week because {I} can't get enough
            {my} mouth waters at the thought of {o}
            {I} would cross town for good {o}
            when it comes to food, {o} {is} {my} number one
            {I} {have} second helpings whenever there {is} {o}
        """),
        new=lines("""
            {I} tried {o} for the first time this week and fell in love
            {Ive} discovered {o}, and now {I} can't stop eating {it}
            {I} {have} come round to {o}, quite a fan these days
        """),
        ask=lines("""
            what should one cook for {me}? | {o}, please
            what's {my} favourite dish? | {o}
            what {do} {I} like to eat most? | {o}, without a doubt
            is there a dish {I} never {get} tired of? | yes, {o}
            what could {I} eat every day? | {o}
        """),
        end=lines("""
            {I} went off {o} completely
            {I} used to love {o}, but not any more
        """),
        void=lines("""
            how long do you boil {o}?
            the shop was out of {o} again
            have you ever tried {o}?
            {o}, that's what the canteen had today
            some chef on TV swears by {o}
            I've never tasted {o}
            would you serve {o} at a wedding?
            the recipe calls for {o}, but I have none
            a stall at the market sells {o} on Saturdays
            I was asked to bring {o} to the picnic
            there {is} {o} all over the floor, don't ask
        """),
    ),
    "dislike_food": Wording(
        say=lines("""
            {I} can't stand {o}
            {I} {hate} {o}
            {I} {gag} on {o}
            {I} {push} {o} to the side of the plate
            {I} would rather starve than eat {o}
            the smell of {o} drives {me} out of the kitchen
            {o} {is} not {my} thing at all, {I} won't touch {it}
            {I} {dont} like {o} one bit
            you will never catch {me} eating {o}
            {my} stomach turns at the sight of {o}
            {I} secretly {scrape} {o} into the bin
            {I} never understood how anybody can swallow {o}, yuck
            keep {o} far away from {my} plate
            {o} {is} the one thing {I} {refuse} to eat
            {Im} not a fan of {o}
        """),
        new=lines("""
            {I} tried {o} last night, never again
            {Ive} gone off {o}, {I} can't bear the taste now
            {I} {have} grown to hate {o}
        """),
        ask=lines("""
            is there anything {I} {dont} eat? | {o}, horrible stuff
            what food {do} {I} hate? | {o}
            what should one never put on {my} plate? | {o}
            is there any food {I} can't stand? | yes, {o}
        """),
        void=lines("""
            my colleague claims nobody likes {o}
            are you going to finish the {o} or what?
            {o} {is} said to be good for the eyes
            who put {o} in the fridge?
            I haven't made up my mind about {o}
            kids in films never touch the {o}
        """),
    ),
    "like_music": Wording(
        say=lines("""
            {I} {listen} to {o} all day long
            {o} is playing in {my} kitchen from morning to night
            {my} headphones know nothing but {o}
            {I} {love} {o}
            {I} {dance} to {o} while doing the dishes
            {my} playlist is ninety per cent {o}
            {I} {get} goosebumps from {o}
            on long drives {I} {put} on {o} and {sing} along
            {Im} a huge fan of {o}
            {my} neighbours must know every {o} track by now, {I} {play} it so loud
            nothing calms {me} down like {o}
            {I} {spend} all {my} money on tickets for {o}
            when it comes to music, {I} always {come} back to {o}
            {my} ears were made for {o}
        """),
        new=lines("""
            {Ive} got into {o} lately and it's all {I} {listen} to
            someone played {me} {o} and {I} {have} been hooked since last week
            {my} latest musical love is {o}
        """),
        ask=lines("""
            what music {do} {I} like? | {o}
            what's on {my} playlist? | {o}, nothing else
            what {am} {I} humming all the time? | {o}, {I} {love} it
            who or what {do} {I} listen to on the train? | {o}, always
        """),
        end=lines("""
            {I} {dont} listen to {o} any more
        """),
        void=lines("""
            have you heard of {o}?
            they were playing {o} in the lift
            is {o} still a thing?
            the waiter hummed {o} all evening
            I can't tell {o} from any other noise
            {o}? never listened to it
            the taxi driver lectured me about {o}
        """),
    ),
    "has_hobby": Wording(
        say=lines("""
            {I} {spend} {my} weekends {o}
            in {my} spare time {Im} usually {o}
            {my} hobby is {o}
            {o} keeps {me} sane after work
            you will find {me} {o} whenever {I} {have} a free hour
            {my} evenings are for {o}
            {I} {unwind} by {o}
            {I} {devote} every free minute to {o}
            {o} is what {I} {do} for fun
            nothing relaxes {me} like {o}
            {my} friends tease {me} because {Im} always {o}
            rain or shine, on Sundays {Im} {o}
            {my} big passion is {o}
            {I} {lose} track of time when {Im} {o}
        """),
        new=lines("""
            {Ive} taken up {o}
            {my} new hobby is {o}
            {I} tried {o} last month and now {I} {do} it every week
            {I} started {o} this month and it's great fun
        """),
        ask=lines("""
            what {do} {I} do for fun? | {o}, mostly
            {do} {I} have any hobbies? | {o}
            how {do} {I} relax after work? | by {o}
            what {do} {I} do at the weekend? | {Im} usually {o}
        """),
        end=lines("""
            {I} gave up {o}
            {Im} done with {o}, {I} stopped
        """),
        void=lines("""
            is {o} expensive?
            I've never tried {o}
            there's an evening course on {o}, not that I care
            would you ever consider {o}?
            the neighbours' boy got a medal for {o}
            I don't have the patience for {o}
            in the cartoon a mouse saves the day by {o}
            the article says {o} lowers your blood pressure
            if I were retired I might think about {o}
        """),
    ),
    "favorite_color": Wording(
        say=lines("""
            {my} favourite colour is {o}
            {I} {wear} {o} all year round, that being {my} favourite colour
            {o} beats every other colour if you ask {me}
            {I} {want} everything in {o}, it's {my} favourite
            {I} {paint} everything {o} because no colour pleases {me} more
            of all colours {I} {like} {o} best
            {my} wardrobe is one long row of {o}, the colour {I} {love} most
            {o} is {my} colour
            {my} heart belongs to one colour, {o}
            if {I} could only see one colour, {I} would pick {o}
            no shade in the world is as lovely to {me} as {o}
        """),
        ask=lines("""
            what's {my} favourite colour? | {o}
            which colour {do} {I} like best? | {o}, always has been
            in which colour should one wrap {my} present? | {o}, {my} favourite
            what colour {do} {I} love most? | it's {o}
        """),
        void=lines("""
            they painted the bus stop {o}
            would {o} look silly on a door?
            the sky was almost {o} last night
            the bride wore {o}, said the magazine
            I'm out of {o} paint
            {o} doesn't do anything for me
        """),
    ),
    "favorite_movie": Wording(
        say=lines("""
            {my} favourite film is {o}
            {I} {have} watched {o} a dozen times and {love} it more each time
            no film comes close to {o} in {my} eyes
            {I} {know} every line of {o} by heart, best film ever
            {I} {cry} every time at the end of {o}, {my} all-time favourite
            {o} is the best film {I} {have} ever seen
            {my} top film of all time is {o}
            {I} never {get} tired of watching {o}, it's {my} number one
            {I} {force} everybody to watch {o} with {me}, it's the film {I} {love} most
            the poster over {my} bed is from {o}, the film {I} {adore}
            as far as films go, {o} wins for {me}
        """),
        ask=lines("""
            what's {my} favourite film? | {o}
            which film could {I} watch over and over? | {o}
            best film ever, if you ask {me}? | {o}, easily
            what film {do} {I} love most? | {o}, {I} {know} it by heart
        """),
        void=lines("""
            {o} is on at the cinema tonight
            I fell asleep halfway through {o}
            in {o} the captain turns out to be the ghost
            have you seen {o} yet?
            the critics tore {o} to pieces
            I haven't got round to watching {o}
            somebody spoiled the end of {o} for the whole bus
        """),
    ),
    "allergy_to": Wording(
        say=lines("""
            {Im} allergic to {o}
            {I} {come} out in a rash from {o}
            {I} {have} an allergy to {o}
            {my} throat swells up because of {o}
            the doctor confirmed that {I} {react} badly to {o}, it's an allergy
            {I} {carry} an adrenaline pen because of {o}
            {my} immune system goes mad over {o}
            one contact with {o} and {Im} in hospital
            {my} skin blisters from {o}
            {I} {have} to avoid {o} for medical reasons, it's an allergy
            {o} and {my} body are enemies, the allergy test was clear
            {my} eyes stream and {I} can't breathe when {o} {is} around, says the allergist
        """),
        new=lines("""
            {I} just found out that {Im} allergic to {o}
            the allergy test came back positive for {o}
            {Ive} developed an allergy to {o}
        """),
        ask=lines("""
            {do} {I} have any allergies? | yes, {o}
            what {am} {I} allergic to? | {o}
            why the adrenaline pen in {my} bag? | because of {o}, {Im} allergic
            anything the doctors should know about {my} allergies? | only {o}
        """),
        void=lines("""
            can one be allergic to {o}?
            I'm not allergic to {o}, luckily
            the label says it may contain {o}
            the test for {o} came back negative
            half the kids on the trip couldn't be near {o}
            the leaflet says something about {o}
            {o}? no trouble at all with that
        """),
    ),
    "scared_of": Wording(
        say=lines("""
            {Im} scared of {o}
            {Im} terrified of {o}
            {I} {have} a phobia of {o}
            {my} worst nightmare is {o}
            {I} {freeze} at the mere thought of {o}
            {my} knees go weak because of {o}
            {I} {break} out in a cold sweat when it comes to {o}
            nothing frightens {me} like {o}
            {I} {scream} like a child because of {o}
            {my} therapist and {I} talk about {my} fear of {o}
            brave as {I} may look, {o} {is} too much for {me}, {I} {panic}
            {I} {avoid} {o} at all costs, pure fear
            {I} {sleep} with the light on because of {o}
            ever since childhood {I} {have} been afraid of {o}
        """),
        ask=lines("""
            what {am} {I} afraid of? | {o}
            is there anything that scares {me}? | yes, {o}
            what's {my} biggest fear? | {o}
            what makes {me} panic? | {o}, ever since childhood
        """),
        end=lines("""
            {I} got over {my} fear of {o}
        """),
        void=lines("""
            are you scared of {o}?
            I've never been bothered by {o}
            the film was all about {o}
            I'm not afraid of {o} in the least
            there's a museum of {o} now, believe it or not
            who would be afraid of {o}?
            the kids in the yard were playing a game with {o}
        """),
    ),
}

PAIRS: dict[tuple[str, str], tuple[str, ...]] = {
    ("like_food", "dislike_food"): lines("""
        {I} {love} {o} but {I} {loathe} {o2}
        give {me} {o} any day, just keep {o2} away from {me}
        {o2}? never, but {I} will fight you for {o}
        {I} {pick} the {o2} out and {ask} for more {o}
        {o} yes please, {o2} no thank you, that sums up {my} taste
    """),
}
