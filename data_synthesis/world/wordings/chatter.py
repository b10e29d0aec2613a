"""Lines about nothing: small talk, fillers, prompts and reactions. None of them states a fact of any relation."""

from __future__ import annotations

from data_synthesis.world.wordings.form import lines

FILLERS = lines("""
    It has been a long week.
    Anyway, the coffee is ready.
    I could talk about that for hours.
    Sorry for the late reply.
    My phone is nearly dead.
    It's pouring outside again.
    I hardly slept last night.
    The heating is broken once more.
    But enough of that.
    I'm a little out of breath.
    Hold on, the kettle is boiling.
    Time flies, doesn't it?
    The lift got stuck this morning.
    What a day.
    I need to sit down first.
    The line is bad today.
    The traffic was awful.
    I nearly forgot to call.
    Somebody is drilling next door.
    I lost my umbrella again.
    My back hurts from all the sitting.
    The sun is out at last.
    I've just come in from the rain.
    Don't mind the noise.
    Let me close the window.
    I had three meetings before lunch.
    The shops were packed.
    I can't find my glasses.
    It's far too early for this.
    The clocks went back, so I'm confused.
    I burnt the toast.
    There was a power cut earlier.
    I still have to do the laundry.
    My feet are killing me.
    Nobody warned me about the hail.
    The post was late again.
""")
SMALL_TALK = lines("""
    the weather can't make up its mind today
    I waited forty minutes for the bus
    did you see that sunset yesterday?
    I finally fixed the kitchen drawer
    my internet was down all morning
    how did the meeting go?
    I slept like a log
    the queue at the post office went round the corner
    is it just me or is it getting colder?
    I forgot my password for the third time this week
    we should catch up properly some time
    the news is depressing, I switched it off
    did you get my message?
    I've been cleaning windows since noon
    somebody left the gate open again
    there was a rainbow over the car park
    I can't believe it's already this late in the year
    the neighbours had a party until three
    did you remember to water the plants?
    I spilled coffee on my notes
    the new bakery opens at six, apparently
    my keys were in the fridge, don't ask
    how was the trip back?
    everything hurts after all that shovelling
    the printer jammed the moment I needed it
    I keep mixing up the bin days
    what time is it where you are?
    they closed the bridge for repairs
    that storm took half the roof tiles off the shed
    I had the strangest dream about a staircase
    do you need anything from the shop?
    the train was so full I stood all the way
    my watch stopped at ten past four
    I've read the same page five times now
    the radiator makes a knocking sound
    thanks again for lending me the ladder
    are you feeling better?
    it took me an hour to find a parking space
    the milk went sour overnight
    someone painted the bench and I sat on it
    I should really go to bed earlier
    the fireworks kept the whole street awake
    hello, can you hear me now?
    the elections are all anybody talks about
    I have nothing planned for tomorrow
    the museum was closed, typical
    my umbrella turned inside out
    what did the doctor say about your knee?
    I found a twenty in an old coat
    the kettle finally gave up
    it's so quiet here without the traffic
    I got lost in that new shopping centre
    did they ever find out who took the sign?
    the garden looks terrible this year
    I owe you a coffee, I think
    my shoulder is stiff from sleeping badly
    let's hope the weekend is dry
    the dishwasher flooded the floor
    I missed the beginning of the show
    do you also get those spam calls?
    happy Friday, we made it
    the lamp in the stairwell flickers like in a horror film
    I am so behind with my mails
    they moved the bus stop without telling anybody
    can you believe how expensive butter is?
    I watched the rain for an hour and did nothing
    the alarm went off for no reason
    you sound a bit hoarse today
    my to-do list is longer than my arm
    that joke about the penguin still makes me laugh
    my socks are soaked
    the old cinema is being torn down
    sorry, I had to take another call
    we had no hot water for two days
    where did the afternoon go?
    I put salt in the tea by mistake
    the leaves are all over the pavement
    I signed for a parcel that isn't mine
    nothing new here, same old same old
    the moon was enormous last night
    did you sort out the thing with the bank?
    I got a paper cut and made a drama of it
    everyone at the table was coughing
    my screen froze in the middle of the talk
    the fog is so thick I can't see the street
""")
PROMPTS = lines("""
    What's new with you?
    How are things?
    Tell me something about yourself.
    How have you been?
    Anything exciting going on?
    So, what's happening in your life?
    I'm all ears.
    It's been ages, bring me up to date!
    You look thoughtful, what's up?
    How was your week?
    Any news?
    What have I missed?
    Go on, surprise me.
    Good to hear your voice. How's life?
    You wanted to tell me something?
    And on your side?
    Let's hear it, then.
    Hey there, long time no see!
    What's the latest?
    You go first this time.
    What else is going on?
    Hello again! All well?
    I've got time, talk to me.
    Right, where were we?
    So how's everything?
    Spill the beans.
    What keeps you busy?
    I was just thinking about you.
    Fancy a chat?
    Morning! Sleep well?
""")
FAMILY_PROMPTS = lines("""
    How's the family?
    And everybody at home?
    How are your people doing?
    Any news from your loved ones?
    What's everyone up to?
    Is all well with the clan?
    Tell me about the rest of the crew.
    How's everyone on your side?
    And the relatives?
    Heard from your folks lately?
    What about those close to you?
    Who do you see most these days?
""")
REACTIONS = lines("""
    Oh, nice!
    Really?
    I had no idea.
    That's wonderful.
    Good for you!
    Interesting.
    Ha, I can picture that.
    Sounds about right.
    Wow, okay.
    Fair enough.
    I see.
    You don't say.
    That explains a lot.
    Well, well.
    Lovely.
    No way!
    Makes sense.
    Tell me more.
    Ah, that rings a bell.
    Who would have thought?
    How about that.
    Got it.
    That's new to me.
    I'm impressed.
    Cool.
    Goodness.
    Oh my.
    That's a surprise.
""")
