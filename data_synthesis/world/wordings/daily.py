"""Wordings: home, work, study, clubs, things and plans."""

from __future__ import annotations

from data_synthesis.world.wordings.form import Wording, lines

WORDINGS: dict[str, Wording] = {
    "live_in_citystatecountry": Wording(
        say=lines("""
            {I} {live} in {o}
            {my} flat in {o} has a leaking roof
            {o} has been home to {me} for a while now
            {my} letters go to an address in {o} these days
            every evening {I} {take} the last tram home to {o}
            {my} rent in {o} eats up half {my} wages
            {Im} renting two rooms above a bakery in {o}
            {my} front door looks out on the main square of {o}
            {I} {have} got a place of {my} own in {o}
            {Im} registered to vote in {o}, which is where {my} house is
            {o} is where {my} bed and {my} mailbox are
            {my} neighbours here in {o} know {me} by name
            {I} never {regret} settling in {o}
            the council of {o} sends {me} its tax bills, so {I} {live} there officially
            whoever wants to see {me} at home has to come to {o}
        """),
        new=lines("""
            {Ive} just moved to {o}
            {I} carried the last box into {my} new flat in {o} yesterday
            as of last week, {my} new home is in {o}
            {I} packed up everything and settled in {o} this month
            {I} got the keys to {my} new house in {o}
        """),
        ask=lines("""
            where {do} {I} live these days? | in {o}
            which town {do} {I} call home? | {o}, near the station
            where should a parcel for {me} go? | to {o}, that's where {my} flat is
            {am} {I} settled somewhere now? | yes, {o} it is
            what's the name of the place where {I} {live}? | it's called {o}
        """),
        end=lines("""
            {I} {dont} live in {o} any more
            {I} gave back the keys of the flat in {o} and left for good
            {o} isn't home to {me} now, that's over
            {I} moved out of {o}
        """),
        void=lines("""
            have you ever been to {o}?
            if I won the lottery, I'd live in {o}
            I missed my train to {o} this morning
            the weather report said {o} is getting snow
            I've never lived in {o}, whatever the form says
            there was a documentary about the old harbour of {o}
            should I spend a weekend in {o}, what do you think?
            some fellow on the train wouldn't stop praising {o}
            my parcel got stuck somewhere in {o}
            I would hate to live in {o}
        """),
    ),
    "place_origin": Wording(
        say=lines("""
            {I} grew up in {o}
            {I} {come} from {o} originally
            {I} was born in {o}
            {my} childhood was spent in {o}
            {o} is where {I} learnt to walk and talk
            {my} accent is pure {o}, that's where {I} spent {my} first eighteen years
            {my} roots are in {o}
            {I} first saw the light of day in {o}
            as a kid {I} ran through the streets of {o}
            {my} birth certificate was issued in {o}
            {o} made {me}, {I} lived there until {I} left school
            all {my} primary school classmates are still in {o}, where {I} {come} from
            {Im} a native of {o}
            you can tell from the way {I} {talk} that {I} {was} raised in {o}
        """),
        ask=lines("""
            where {am} {I} from originally? | from {o}
            where did {I} grow up? | in {o}, of all places
            in which town {was} {I} born? | {o}
            {am} {I} from around here? | no, {I} grew up in {o}
        """),
        void=lines("""
            people always assume I'm from {o}, but I'm not
            I wasn't born in {o}, that's a myth
            do you know anybody from {o}?
            imagine being born in {o}
            the singer on the radio said he comes from {o}
            I wonder what growing up in {o} would be like
        """),
    ),
    "employed_by_company": Wording(
        say=lines("""
            {I} {work} for {o}
            {my} payslip comes from {o}
            {Im} on the staff of {o}
            {o} pays {my} salary
            {my} boss at {o} never answers mails
            {I} {clock} in at {o} every morning at seven
            the canteen at {o} gives {me} free lunch like all the staff
            {Im} employed at {o}
            {my} desk at {o} is right by the lifts
            {my} contract with {o} runs for two more years
            {I} {earn} {my} living at {o}
            {o} put {me} on the night shift again
            {my} colleagues at {o} threw {me} a birthday party
            {o} is {my} employer
            {I} {spend} forty hours a week working at {o}
        """),
        new=lines("""
            {I} started at {o} on Monday
            {o} hired {me} last week
            {I} signed a contract with {o} and it's {my} first week there
            {Ive} just switched jobs, it's {o} now
            the new badge around {my} neck is from {o}, {I} began there this month
        """),
        ask=lines("""
            who {do} {I} work for? | {o}
            which company {am} {I} with? | {Im} with {o}
            where {do} {I} work these days? | at {o}
            whose logo is that on {my} work jacket? | that's {o}, {my} employer
            who signs {my} pay cheques? | {o} does
        """),
        end=lines("""
            {I} handed in {my} notice and left {o}
            {I} {dont} work for {o} any more
            {o} let {me} go
            {my} time at {o} is over
        """),
        void=lines("""
            would you ever work for {o}?
            {o} never answered my application
            I saw an advert by {o} on the bus
            I turned down an offer from {o}
            if {o} called me tomorrow I'd say yes
            the van in front of me was from {o}
            the paper says {o} is opening a branch here
            I ordered something from {o} and it never arrived
            no, I've never worked for {o}
            what do they even make at {o}?
        """),
    ),
    "has_profession": Wording(
        say=lines("""
            {I} {work} as {a}
            {Im} {a} by trade
            {I} {earn} {my} money as {a}
            being {a} pays {my} bills
            {my} job is that of {a}
            {my} business card says {o}
            {Im} {a}, so please forgive the state of {my} hands
            {I} {make} a living as {a}
            the tax office has {me} down as {a}
            on weekdays {Im} {a}
            as {a} {I} {meet} all sorts of people at work
            {my} profession is easily told: {o}
            whatever {a} does all day, that's what {I} {do} for money
            {Im} employed as {a}
        """),
        new=lines("""
            {Im} a qualified {o} now, {I} started last week
            {Ive} become {a}
            {I} switched careers and {work} as {a} now
            it's {my} first month as {a}
        """),
        ask=lines("""
            what {do} {I} do for a living? | {Im} {a}
            what's {my} job? | {o}
            what line of work {am} {I} in? | {I} {work} as {a}
            what does it say on {my} business card? | {o}
            {do} {I} have a job? | yes, as {a}
        """),
        end=lines("""
            {I} {dont} work as {a} any more
        """),
        void=lines("""
            I need to find {a} before the weekend, do you know one?
            I could never be {a}
            {a} came by to look at the damage
            would you let your kids become {a}?
            as a kid I dreamt of being {a}, nothing came of it
            in the series everybody turns out to be {a}
            they mistook me for {a} at the party
            how much does {a} make, roughly?
            {a} walks into a bar, stop me if you know this one
            if I had been {a}, would I be rich by now?
            the lady next to me on the plane was {a}
        """),
    ),
    "previous_profession": Wording(
        say=lines("""
            {I} used to be {a}
            in a former life {I} {was} {a}
            before all this {I} worked as {a}
            {my} old job was being {a}
            {I} spent ten years as {a} before {I} had enough
            {I} {was} {a} once, long ago
            {my} first career was as {a}
            {I} gave up working as {a} because of {my} back
            {my} days as {a} are behind {me}
            {I} {have} been {a} in the past, but not now
            back in the day {I} made {my} money as {a}
            {I} retired from being {a}
            {my} hands still remember the years as {a}
        """),
        ask=lines("""
            what did {I} do before the current job? | {I} {was} {a}
            what was {my} first real job? | {a}, for six years
            {have} {I} always done the same work? | no, {I} started out as {a}
            what did {I} do for a living in the old days? | {I} {was} {a}
        """),
        void=lines("""
            I was never {a}, who told you that?
            the actor used to be {a}, the magazine says
            did {a} live in this house before us?
            wouldn't it be funny if I had been {a}?
            I've heard the mayor was {a} once
        """),
    ),
    "attend_school": Wording(
        say=lines("""
            {I} {study} at {o}
            {Im} enrolled at {o}
            {my} lectures at {o} start at eight
            {my} student card is from {o}
            {I} {go} to {o}
            {o} accepted {me} and that's where {I} {take} {my} classes
            {I} {have} two more terms at {o} to get through
            {my} professors at {o} give {me} far too much homework
            {Im} a student at {o}
            {I} {cram} for the finals at {o}
            three evenings a week {I} {sit} in a classroom at {o}
            {my} tuition fees go to {o}
            {I} {have} got exams coming up at {o}
        """),
        new=lines("""
            {I} started at {o} this term
            it's {my} freshers' week at {o}
            {I} got into {o} and {have} had {my} first lectures there
        """),
        ask=lines("""
            where {do} {I} go to school? | {o}
            which college {am} {I} at? | {Im} at {o}
            where {do} {I} take those classes? | at {o}
            {am} {I} still studying? | yes, at {o}
        """),
        end=lines("""
            {I} dropped out of {o}
            {I} finished at {o}, no more classes there
        """),
        void=lines("""
            is {o} any good?
            {o} turned me down, so that's that
            I walked past {o} on the way to the market
            I would have loved to go to {o}
            someone broke a window at {o}, it was in the news
            I never went to {o}
            they were filming something in front of {o}
        """),
    ),
    "has_degree": Wording(
        say=lines("""
            {I} {have} a degree in {o}
            {I} graduated in {o}
            {my} diploma is in {o}
            {my} master's degree is in {o}
            {I} wrote {my} thesis in {o} and passed
            the university certificate on {my} wall says {o}
            {o} is what {I} got {my} degree in
            {I} majored in {o} and finished with honours
            {I} {have} a bachelor's in {o} to show for all that student debt
            after five years {I} came out with a degree in {o}
            {Im} a graduate in {o}
            {I} put on the gown and collected {my} diploma in {o}
        """),
        ask=lines("""
            what did {I} get {my} degree in? | {o}
            what did {I} graduate in? | {o}, with honours
            {do} {I} have a degree? | yes, in {o}
            what's {my} diploma in? | it's in {o}
        """),
        void=lines("""
            isn't {o} terribly hard?
            I dropped out of {o} before I got any degree
            I never got that degree in {o}
            who needs a degree in {o} nowadays?
            the host of the show has a degree in {o}, apparently
            I read half a book about {o} on the train
            if I were young again I'd take a degree in {o}
        """),
    ),
    "member_of": Wording(
        say=lines("""
            {Im} a member of the {o}
            {I} {belong} to the {o}
            {my} Thursday evenings belong to the {o}, {Im} a member
            {I} {pay} {my} dues to the {o}
            {Im} the youngest member the {o} has
            {my} membership card for the {o} is always in {my} wallet
            {I} {sit} on the committee of the {o}
            {Im} part of the {o}
            {I} {have} been in the {o} since forever
            the {o} made {me} its treasurer
            once a week {my} fellow members of the {o} meet at {my} kitchen table
            {I} never {miss} a meeting of the {o}, being its secretary
        """),
        new=lines("""
            {I} joined the {o} last week
            the {o} took {me} in as a new member
            {I} signed up with the {o} this month
            {Im} the newest member of the {o}
        """),
        ask=lines("""
            {am} {I} in any club? | yes, the {o}
            which club did {I} join in the end? | the {o}
            what club card is that in {my} wallet? | {Im} in the {o}
            {do} {I} belong to a society or something? | to the {o}
        """),
        end=lines("""
            {I} quit the {o}
            {Im} not in the {o} any more
        """),
        void=lines("""
            did you see the poster of the {o}?
            the {o} is looking for new people, but it isn't for me
            should I join the {o} or is that silly?
            I'm not a member of the {o}, I only parked there
            the {o} kept the whole street awake last night
            what does one even do in the {o}?
        """),
    ),
    "have_vehicle": Wording(
        say=lines("""
            {I} {drive} {a}
            {I} {commute} by {o}, {my} own
            {my} {o} is parked outside
            {my} {o} failed its inspection
            {I} {own} {a} that still runs
            {I} {keep} {a} in the garage
            {my} {o} broke down on the ring road
            {I} {have} {a} to get around
            {my} insurance for the {o} went up again
            there's {a} in {my} driveway, fully paid off
            without {my} {o} {I} would never get to the shops
            {I} {wash} {my} {o} every Sunday
            {a} takes {me} everywhere, {I} bought it years ago
        """),
        new=lines("""
            {I} bought {a} last weekend
            {I} traded everything in for {a}
            {Ive} got {a} now, collected it from the dealer yesterday
            {Im} the proud new owner of {a}
        """),
        ask=lines("""
            what {do} {I} drive? | {a}
            how {do} {I} get around? | {I} {have} {a}
            {do} {I} have {my} own wheels? | yes, {a}
            what's that parked in {my} driveway? | {my} {o}
        """),
        end=lines("""
            {I} sold the {o}
            {I} {dont} have the {o} any more
        """),
        void=lines("""
            {a} nearly ran me over
            I rented {a} for the day
            is {a} hard to park?
            I've never owned {a}
            if I had {a} I'd be there in ten minutes
            {a} was blocking the whole street this morning
            the thief in the film gets away in {a}
            what would one pay for {a} these days?
        """),
    ),
    "own": Wording(
        say=lines("""
            {I} {own} {a}
            {my} {o} takes up half the living room
            {I} {have} {a} at home
            {I} inherited {a} from an aunt and it's in {my} hallway now
            there's {a} in {my} attic
            {I} {polish} {my} {o} every weekend
            {my} {o} needs a repair
            {my} most treasured possession is {a}
            {my} place isn't big but there's room for {my} {o}
            nobody is allowed to touch {my} {o}
            {I} {have} got {a}, it was a birthday present
            {I} {keep} {a} in the cellar
            the best thing {I} ever bought was {my} {o}
            burglars would go straight for {my} {o}
        """),
        new=lines("""
            {I} finally bought {a} last week
            {I} found {a} at the flea market and took it home
            {a} was delivered to {my} door yesterday, {I} had saved up for it
            {Ive} just bought {a}
        """),
        ask=lines("""
            what's that big thing in {my} living room? | {my} {o}
            what did {I} inherit? | {a}
            what would {I} save from a fire? | {my} {o}
            what's the best thing {I} {own}? | {a}, no contest
        """),
        end=lines("""
            {I} gave the {o} away
            {I} sold the {o} at a flea market
        """),
        void=lines("""
            I had to borrow {a} for the weekend
            do you know where one can rent {a}?
            I saw {a} in a shop window, far too expensive
            I wish I had {a}
            what would anyone do with {a}?
            there was {a} on stage and nobody used it
            I've never owned {a} in my life
            the man on the radio was going on about {a}
            who leaves {a} at a bus stop?
        """),
    ),
    "collect": Wording(
        say=lines("""
            {I} {collect} {o}
            {my} shelves are full of {o}, {Ive} been hunting them down for years
            {my} collection of {o} keeps growing
            {I} {have} boxes and boxes of {o} and {keep} adding to them
            {Im} always on the lookout for {o} to add to the collection
            {I} {go} to flea markets to hunt for {o}
            if you ever see rare {o}, {I} {buy} them for the collection
            {my} spare room is a museum of {o}
            {I} {catalogue} {my} {o} by year and country
            {my} family gives {me} {o} for every birthday, to complete the set
            {I} {swap} {o} with other collectors
            hundreds of {o}, that's {my} collection so far
        """),
        ask=lines("""
            {do} {I} collect anything? | yes, {o}
            what's in all those boxes of {my} collection? | {o}
            what should one bring {me} from a flea market? | {o}, for the collection
            what {do} {I} hunt for at auctions? | {o}, {I} {have} hundreds
        """),
        end=lines("""
            {I} sold the whole collection of {o}
        """),
        void=lines("""
            who on earth collects {o}?
            there was a fair for {o} in the town hall
            I don't see the point of collecting {o}
            a museum somewhere shows nothing but {o}
            could one get rich with {o}?
            I threw out a box of {o} from the cellar, none of them mine
        """),
    ),
    "want_do": Wording(
        say=lines("""
            one day {I} {want} to {o}
            {my} big dream is to {o}
            {I} {plan} to {o} before {I} {turn} fifty
            {Im} determined to {o}
            {my} bucket list says: {o}
            {I} {hope} to {o} at last
            {I} {have} set {my} heart on one thing, to {o}
            nothing will stop {me}, {I} will {o} some day
            {I} {keep} dreaming about the day when {I} can {o}
            next on {my} list of plans: {o}
            {Im} itching to {o}
            {Im} saving up to {o}
            {my} resolution for the coming year is to {o}
        """),
        ask=lines("""
            what's {my} dream? | to {o}
            what {do} {I} want to do with all that free time? | {o}
            what {am} {I} saving up for? | {I} {want} to {o}
            what's on {my} bucket list? | to {o}, mainly
        """),
        end=lines("""
            {I} no longer {want} to {o}
        """),
        void=lines("""
            would you ever {o}?
            why does everybody want to {o} all of a sudden?
            I have no wish to {o}
            you couldn't pay me to {o}
            in the book the butler's only wish is to {o}
            is it hard to {o}?
            the radio had a piece on people who {o}
        """),
    ),
}

PAIRS: dict[tuple[str, str], tuple[str, ...]] = {
    ("has_profession", "employed_by_company"): lines("""
        {I} {work} as {a} at {o2}
        {Im} {a} with {o2}
        {o2} employs {me} as {a}
        {my} job at {o2} is that of {a}
        {Im} the only {o} on the payroll of {o2}
    """),
    ("has_degree", "attend_school"): lines("""
        {I} got {my} degree in {o} and {study} at {o2} now
        with a diploma in {o} already in {my} pocket, {Im} back in class at {o2}
        {I} graduated in {o} and still {go} to lectures at {o2}
    """),
    ("place_origin", "live_in_citystatecountry"): lines("""
        {I} {live} in {o2} but {I} {come} from {o}
        {I} swapped {o}, where {I} grew up, for {my} flat in {o2}
        born in {o}, {I} {have} made {my} home in {o2}
        {I} may live in {o2} now, but {I} {was} raised in {o}
    """),
    ("previous_profession", "has_profession"): lines("""
        {I} used to be {a}, and now {Im} {a2}
        from {a} to {a2}, that's {my} career up to today
        {I} {was} {a} before {I} became {a2}
        these days {Im} {a2}, although {I} started out as {a}
    """),
}
