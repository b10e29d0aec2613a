"""The raw words of the world: what people are called, where they live, what they do, keep, eat and fear.

Only words stand here, comma-separated; `values.py` composes longer values from them and deals every value to one split.
Towns, employers, schools, clubs, bands, films and surnames are invented, so that a model cannot know them beforehand.
"""

from __future__ import annotations


def words(text: str) -> list[str]:
    return [" ".join(item.split()) for item in text.replace("\n", " ").split(",") if item.strip()]


FEMALE_NAMES = words("""
Ana, Mia, Ingrid, Noor, Priya, Saoirse, Yuki, Leila, Greta, Marit, Suki, Lena, Rosa, Ines, Clara, Elif, Farah, Hana,
Ilse, Joana, Katya, Liv, Maeve, Nadia, Odile, Paola, Renata, Sanna, Tessa, Ursula, Valeria, Wanda, Xenia, Yara,
Zora, Amara, Brigid, Carmen, Dalia, Edith, Fiona, Gwen, Hester, Imani, Juno, Kirsten, Lucia, Malin, Nell, Olga,
Petra, Rhea, Silvia, Thea, Una, Vera, Winnie, Agnes, Bettina, Chiara, Dorota, Esme, Freya, Gisela, Harriet, Isolde,
Jolene, Kamala, Lorna, Mireille, Naomi, Oriana, Paz, Ruth, Sunniva, Tamsin, Violeta, Wilma, Zuzana, Aisha, Beatriz,
Colette, Delphine, Eleni, Femke, Giulia, Hedda, Irma, Jasmin, Kinga, Linnea, Magda, Nuria, Ottilie, Philippa, Rania,
Solveig, Tilda, Veronika, Zeynep, Anouk, Birgit, Cecily, Despina, Elspeth, Fatima, Gudrun, Hiroko, Ivana, Jette,
Keiko, Larisa, Meera, Nieve, Oona, Pilar, Romy, Sabine, Talia, Vivienne, Yolanda
""")

MALE_NAMES = words("""
Tobin, Sander, Edo, Bram, Luca, Mateo, Anders, Kofi, Ravi, Pavel, Idris, Jonas, Kenji, Lars, Malik, Nils, Otto,
Pedro, Quentin, Rasmus, Stefan, Tomas, Ulrich, Viktor, Wim, Yusuf, Zoltan, Arjun, Bastian, Cormac, Dmitri, Emil,
Felix, Goran, Hamish, Ivo, Jakub, Kasper, Leon, Miguel, Nikos, Oskar, Piet, Rory, Samir, Tadeo, Vasco, Wyatt, Xavi,
Zeke, Alistair, Benedikt, Caspian, Dario, Einar, Fergus, Gideon, Hugo, Isak, Jorge, Klaus, Lorcan, Marek, Nestor,
Orlando, Pascal, Rafael, Silas, Teodor, Umberto, Vidar, Walter, Amos, Bruno, Casimir, Declan, Eskil, Florian,
Gaspard, Henrik, Ismail, Joachim, Kamal, Ludo, Mirko, Noel, Osman, Patrik, Ruben, Sergio, Timo, Valentin, Wendell,
Yannick, Zubin, Aldo, Boris, Ciaran, Domenico, Elias, Fyodor, Gustav, Haruki, Igor, Jurgen, Kwame, Leopold, Moritz,
Nabil, Olaf, Percy, Rocco, Sven, Thaddeus, Vikram, Wolfgang, Yiannis, Zdenek
""")

SURNAME_HEADS = words("""
Ash, Bram, Carl, Dun, Elm, Fair, Gar, Hart, Ing, Jar, Kel, Lind, Mor, Nor, Oak, Pen, Quar, Red, Stan, Thorn, Ul,
Van, Whit, Yar, Zel, Brook, Cald, Dray, Esk, Fal, Grim, Holl, Isel, Kirk, Lang, Marl, North, Orm, Pell, Rav, Sel,
Tor
""")
SURNAME_TAILS = words("""
by, combe, den, er, field, ford, gate, ham, hurst, ley, low, man, mere, more, ner, quist, ridge, sen, shaw, son,
stad, strom, ton, vik, wald, well, wick, worth
""")

TOWN_HEADS = words("""
Brel, Oskar, Kell, Tarn, Dovel, Hesp, Lumber, Marsk, Nettle, Ostra, Pell, Quill, Ros, Sand, Thistle, Umber, Vell,
Wend, Yarrow, Zant, Alder, Birch, Corv, Drift, Ember, Fern, Gorse, Heath, Ivel, Juni, Kestrel, Lark, Moss, Nor,
Otter, Plov, Quern, Rush, Sedge, Teal, Ulver, Vesper, Willow, Yew, Amber, Bittern, Cinder, Damsel, Elder, Fallow,
Garnet, Harrow, Isen, Jasper, Kind, Linden, Merle, Noct, Orch, Pike, Raven, Stork, Tallow, Vint, Whimbrel
""")
TOWN_TAILS = words("""
mouth, fell, port, haven, borough, stead, minster, bridge, vale, holm, cester, dale, wick, pool, cliffe, thorpe
""")
REAL_TOWNS = words("""
Porto, Nantes, Lyon, Ghent, Turku, Bergen, Galway, Graz, Trieste, Malmo, Aarhus, Gdansk, Brno, Split, Valencia,
Bilbao, Coimbra, Leeds, Dundee, Cardiff, Bristol, Omaha, Tucson, Boise, Duluth, Halifax, Winnipeg, Quebec City,
Oaxaca, Puebla, Cusco, Rosario, Curitiba, Montevideo, Accra, Nairobi, Durban, Fez, Izmir, Tbilisi, Almaty, Jaipur,
Kochi, Pune, Hanoi, Chiang Mai, Penang, Busan, Sapporo, Fukuoka, Hobart, Dunedin, Perth, Adelaide, Reykjavik,
Tallinn, Vilnius, Zagreb, Palermo, Verona, Bern, Leipzig, Bremen, Utrecht, Antwerp, Marseille, Toulouse, Salamanca,
Thessaloniki, Plovdiv, Cluj, Wroclaw, Debrecen, Maribor, Tromso, Uppsala
""")

EMPLOYER_HEADS = words("""
Halden, Corvid, Nimbrel, Acorn, Lumo, Tessel, Orvane, Pinfold, Quarrin, Brightwater, Solstice, Marrow, Velden,
Ironbark, Juniper, Kestrow, Larkspur, Meridane, Northlight, Oxbow, Palisade, Redfern, Saltmarsh, Tidewell, Umbra,
Vantor, Wexcombe, Yellowstone Row, Zephyra, Amberline, Bluegate, Copperleaf, Dunmore, Everglen, Foxglove, Greystoke,
Hollowell, Inkwell, Jorvik, Kingsley, Lanternfish, Millrace, Nettlefield, Old Harbour, Pemberlane, Quicksilver,
Rookwood, Silverbirch, Thornbury, Upland, Viaduct, Wolfram, Ashgrove, Basalt, Candlewick, Driftwood, Elmstone,
Fathom, Gantry, Hearthside, Isobar, Kelpie, Lodestar, Mosswell, Nightjar, Opaline, Pitchfork, Quayside, Ripple,
Starling, Tamarind, Undertow, Verdigris, Whetstone
""")
EMPLOYER_TAILS = words("""
Freight, Logistics, Robotics, Foods, Textiles, Insurance, Analytics, Bakery, Clinic, Motors, Publishing, Software,
Energy, Architects, Brewery, Hotels, Airlines, Ceramics, Labs, Opticians, Shipping, Records, Furniture, Dairy,
Telecom, Nurseries
""")

SCHOOL_HEADS = words("""
Abbotsfield, Bellmoor, Crestwell, Dunleigh, Eastmere, Farrowdale, Glenholt, Hawkridge, Inverlay, Kingsmoor,
Larchfield, Millbrae, Northwold, Oakhurst, Parkmoor, Queensferry, Ridgemont, Stonehaven, Thornleigh, Upperby,
Valebrook, Westmoor, Yarrowby, Ashcombe, Brackendale, Cloverhill, Deepdene, Elmsworth, Foxley, Greenhithe,
Hollinwood, Ivybridge, Kirkmere, Longmead, Moorgate, Netherby, Orchardleigh, Priorsfield, Rookhope, Southmere,
Tarnside, Underhill, Wychwood, Yewdale
""")
SCHOOL_TAILS = words("""
College, University, Polytechnic, Institute, Academy, Conservatory, School of Art, Business School, Technical
College, Night School
""")

CLUB_HEADS = words("""
Alderley, Brambleside, Chestnut Lane, Dockside, Eastbank, Ferryman, Goldcrest, Hillfoot, Island Row, Jubilee,
Kingfisher, Lockgate, Marshland, Newbridge, Old Mill, Pierhead, Quarry Hill, Riverside, Southgate, Towpath, Union
Street, Valley, Westbank, Windmill, Beacon, Cobbler Street, Drumlin, Estuary, Fountain Square, Granary, Harbourside,
Ironworks, Junction, Lighthouse, Maltings, Nine Elms, Orchard Road, Promenade, Rope Walk, Station Road, Tannery,
Viaduct Street, Weavers
""")
CLUB_TAILS = words("""
rowing club, choir, chess club, book club, running club, brass band, allotment society, cycling club, theatre group,
bowls club, swim team, debating society, sailing club, quilting circle, film society, rugby club, astronomy society,
hiking group
""")

BAND_HEADS = words("""
Velvet, Paper, Copper, Midnight, Static, Plastic, Wooden, Electric, Hollow, Silver, Crooked, Lazy, Northern,
Burning, Quiet, Feral, Glass, Marble, Rusty, Sunday, Winter, Borrowed, Distant, Golden, Haunted, Invisible, Jagged,
Kindly, Lunar, Nervous
""")
BAND_TAILS = words("""
Otters, Lanterns, Parade, Harbours, Cousins, Satellites, Orchard, Telegraph, Foxes, Umbrellas, Carousel, Wolves,
Ferries, Almanac, Machines, Sparrows, Engines, Postcards, Magnets, Thunder
""")
GENRES = words("""
bossa nova, bluegrass, Delta blues, doom metal, fado, flamenco, ska, reggae, dub, drum and bass, trip hop, ambient
techno, chamber music, baroque opera, Gregorian chant, klezmer, zydeco, Afrobeat, highlife, cumbia, tango, salsa,
merengue, shoegaze, krautrock, synth pop, city pop, grime, drill, garage rock, surf rock, rockabilly, honky-tonk,
swing, bebop, free jazz, gospel, motown, disco, Italo disco, acid house, dancehall, calypso, sea shanties, Celtic
folk, Balkan brass, qawwali, gamelan, throat singing, choral music, organ music, minimalism, post-punk, hardcore
punk, emo, math rock, prog rock, power ballads, show tunes, film scores, lo-fi hip hop, boom bap, polka, yodelling,
mariachi, samba, forro, rebetiko, dream pop, industrial metal
""")

FILM_HEADS = words("""
Salt, Lantern, Winter, Paper, Crimson, Hollow, Seven, Midnight, Amber, Broken, Silent, Borrowed, Distant, Iron,
Glass, Northern, Velvet, Stolen, Burning, Forgotten, Cobalt, Second, Crooked, Drowned, Electric, Final, Gilded,
Hidden, Infinite, Jade, Kindred, Lonely, Marble, Narrow, Orphan, Painted, Quiet, Restless, Shattered, Tangled
""")
FILM_TAILS = words("""
Harbour, Keeper, Orchard, Kingdom, Letters, Railway, Horizon, Tides, Astronaut, Detective, Carnival, Archipelago,
Summer, Machine, Bridges, Orchestra, Cartographer, Mirror, Expedition, Witness, Inheritance, Masquerade, Sparrow,
Promise
""")

JOBS = words("""
nurse, welder, librarian, plumber, translator, beekeeper, anaesthetist, paramedic, locksmith, carpenter, architect,
baker, barber, bricklayer, bus driver, butcher, chemist, chiropractor, civil engineer, court reporter, data analyst,
dentist, dietitian, diver, electrician, estate agent, farrier, firefighter, fishmonger, flight attendant, florist,
forester, game designer, gardener, geologist, glazier, goldsmith, graphic designer, hairdresser, harbour pilot,
historian, hotel manager, illustrator, interpreter, ironmonger, journalist, judge, landscape architect, lawyer,
lifeguard, lighting technician, loss adjuster, luthier, magician, mail carrier, marine biologist, massage therapist,
mechanic, meteorologist, midwife, music teacher, notary, occupational therapist, optician, orthodontist, park
ranger, pastry chef, patent clerk, pharmacist, photographer, physiotherapist, piano tuner, pilot, police officer,
postman, potter, prison guard, proofreader, psychologist, radiographer, roofer, sailmaker, school principal,
sculptor, seamstress, security guard, set designer, shepherd, shoemaker, social worker, software engineer,
sommelier, sound engineer, speech therapist, statistician, stonemason, stunt driver, surgeon, surveyor, tailor,
tattoo artist, tax adviser, taxi driver, tour guide, traffic warden, train driver, tree surgeon, undertaker,
upholsterer, urban planner, vet, waiter, watchmaker, web developer, window cleaner, wine merchant, zookeeper, crane
operator, bookbinder, puppeteer, cartographer, customs officer, auctioneer, croupier, ski instructor, swimming
teacher, kindergarten teacher, maths teacher, geography teacher, cheesemonger, chimney sweep, tram driver
""")

PETS = words("""
ferret, border collie, tortoise, gecko, parakeet, dachshund, greyhound, chinchilla, hamster, guinea pig, rabbit,
cockatiel, budgie, canary, goldfish, axolotl, bearded dragon, corn snake, ball python, iguana, chameleon, hedgehog,
hermit crab, tarantula, stick insect, pug, beagle, poodle, whippet, corgi, husky, labrador, golden retriever,
spaniel, terrier, bulldog, mastiff, dalmatian, rottweiler, Siamese cat, tabby cat, Maine Coon, Persian cat, Bengal
cat, sphynx cat, tortoiseshell cat, parrot, macaw, cockatoo, lovebird, mynah, pony, donkey, pygmy goat, alpaca,
llama, goose, duck, hen, cockerel, turkey, pigeon, barn owl, gerbil, rat, dwarf hamster, sugar glider, skunk,
piglet, potbellied pig, koi carp, betta fish, clownfish, newt, fire salamander, tree frog, milk snake, skink,
terrapin, lurcher, samoyed, akita, schnauzer, chihuahua, basset hound, sheepdog, Newfoundland, mongrel, saluki,
quail, peacock
""")

PET_NAMES = words("""
Biscuit, Pixel, Rusk, Pim, Waffles, Noodle, Pickle, Marmalade, Cobweb, Domino, Truffle, Pepper, Gizmo, Sprocket,
Bandit, Mochi, Olive, Clover, Tofu, Dumpling, Ziggy, Rolo, Figaro, Moby, Nacho, Paprika, Quimby, Rascal, Socks,
Tango, Ukulele, Velcro, Whisky, Yoyo, Zorro, Admiral, Bagel, Captain, Dizzy, Echo, Fidget, Goblin, Hopscotch, Inky,
Jellybean, Kipper, Lollipop, Muffin, Nutmeg, Oreo, Popcorn, Quaver, Radish, Squash, Toffee, Umbro, Vesta, Wombat,
Yeti, Zippy, Acrobat, Bonbon, Crumpet, Doodle, Einstein, Flapjack, Gherkin, Houdini, Igloo, Jigsaw, Kiwi, Lentil,
Meringue, Nimbus, Otis, Parsnip, Quasar, Ravioli, Sherlock, Turnip, Vermouth, Wasabi, Yonder, Zucchini, Almond,
Beans, Chutney, Dandelion, Espresso, Falafel, Gnocchi, Haggis, Jalapeno, Kebab, Lasagne, Mango, Nougat
""")

FOODS = words("""
mushroom risotto, pickled herring, olives, coriander, ramen, falafel wraps, lentil soup, beetroot, goat cheese,
anchovies, oysters, black pudding, liver and onions, brussels sprouts, aubergine, okra, kimchi, sauerkraut, blue
cheese, liquorice, marzipan, rhubarb crumble, rice pudding, treacle tart, baklava, churros, tiramisu, cannoli,
pierogi, goulash, borscht, schnitzel, bratwurst, paella, gazpacho, tortilla, patatas bravas, ceviche, empanadas,
tamales, mole, guacamole, enchiladas, jerk chicken, fried plantain, jollof rice, injera, tagine, couscous,
shakshuka, hummus, tabbouleh, dolma, moussaka, souvlaki, halloumi, biryani, dal, samosas, saag paneer, vindaloo,
naan, dosa, pad thai, green curry, papaya salad, pho, spring rolls, banh mi, laksa, satay, rendang, dim sum, mapo
tofu, hotpot, peking duck, bao buns, okonomiyaki, takoyaki, udon, tempura, miso soup, sashimi, natto, bibimbap,
tteokbokki, fish and chips, shepherd's pie, bangers and mash, cornish pasties, scotch eggs, haggis, porridge,
bagels, clam chowder, gumbo, jambalaya, grits, cornbread, mac and cheese, sloppy joes, meatloaf, pulled pork,
poutine, maple pancakes, waffles, french toast, eggs benedict, quiche, ratatouille, cassoulet, coq au vin, snails,
frogs' legs, onion soup, fondue, raclette, rosti, gnocchi, carbonara, lasagne, pesto, polenta, osso buco, caprese
salad, arancini, calzone, ravioli, tofu scramble, seitan, tempeh, nut roast, parsnips, turnips, celery, fennel,
radishes, asparagus, artichokes, sweetcorn, figs, dates, mangoes, lychees, durian, jackfruit, persimmons,
gooseberries
""")

HOBBIES = words("""
bouldering, baking sourdough, wood carving, playing chess, birdwatching, kayaking, knitting jumpers, restoring old
radios, fly fishing, orienteering, salsa dancing, playing badminton, throwing pots, making cheese, brewing cider,
painting miniatures, building model ships, stargazing, foraging for mushrooms, pressing flowers, writing haiku,
playing the banjo, archery, fencing, judo, parkour, trail running, open-water swimming, paragliding, caving,
geocaching, metal detecting, letterpress printing, quilting, embroidery, crochet, origami, calligraphy, juggling,
improv comedy, amateur dramatics, ballroom dancing, line dancing, roller skating, ice skating, curling,
snowboarding, cross-country skiing, surfing, sailing dinghies, rowing, canoeing, horse riding, beekeeping, growing
orchids, growing chillies, pruning bonsai, keeping a diary, solving crosswords, doing jigsaw puzzles, playing poker,
playing bridge, playing the harmonica, playing the ukulele, playing table tennis, playing squash, playing darts,
lifting weights, practising tai chi, doing yoga, mountain biking, restoring motorbikes, fixing clocks, blowing
glass, making candles, making soap, tie-dyeing shirts, sketching strangers, painting watercolours, taking
black-and-white photos, flying kites, flying drones, coding little games, translating poems, learning dead
languages, tracing family trees, volunteering at the food bank, doing stand-up, playing board games, painting
murals, making stop-motion films, building birdhouses, whittling spoons, leatherwork, basket weaving, urban
sketching, collaging, lino printing, playing pinball, skateboarding, playing croquet, clay pigeon shooting, axe
throwing, ice fishing
""")

VEHICLE_HEADS = words("""
hatchback, camper van, pickup, cargo bike, moped, scooter, estate car, convertible, minibus, tandem, motorbike,
jeep, sidecar, narrowboat, electric bike, folding bike, racing bike, mountain bike, saloon, coupe, station wagon,
hearse, milk float, tricycle, unicycle, rowing boat, dinghy, sports car, roadster, people carrier, three-wheeler,
quad bike, tractor, snowmobile, fire engine, ice-cream van, taxi, double-decker bus, hybrid, limousine
""")
VEHICLE_MARKS = words("""
Tarvo, Orvelo, Kessler, Brandt, Mirada, Polaris Nine, Vantro, Zundal, Halberd, Corsano, Duvall, Elgin, Fennick,
Gravina, Hobart
""")
VEHICLE_LOOKS = words(
    "rusty, second-hand, bright yellow, dark green, ancient, dented, maroon, cream-coloured, silver, sky-blue"
)

THINGS = words("""
telescope, sewing machine, accordion, grand piano, cello, typewriter, record player, espresso machine, pizza oven,
hammock, surfboard, drone, 3D printer, loom, pottery wheel, microscope, metal detector, banjo, drum kit,
synthesizer, trampoline, hot tub, greenhouse, treehouse, beehive, anvil, lathe, chainsaw, tent, projector, pinball
machine, jukebox, chess computer, grandfather clock, rocking chair, chaise longue, waterbed, four-poster bed,
chandelier, lava lamp, globe, sextant, barometer, metronome, harp, bagpipes, didgeridoo, xylophone, theremin,
violin, trombone, tuba, ukulele, mandolin, bread machine, pasta maker, ice-cream maker, waffle iron, smoker, wok,
samovar, air fryer, dehydrator, fish tank, terrarium, bird feeder, weather station, radio transmitter, polaroid
camera, darkroom enlarger, film projector, easel, kiln, printing press, knitting machine, spinning wheel, dartboard,
snooker table, foosball table, rowing machine, treadmill, punchbag, climbing wall, pogo stick, unicorn costume, suit
of armour, kimono, leather jacket, signet ring, pocket watch, fountain pen, sundial, wind chime, garden gnome,
lawnmower, hedge trimmer, cider press
""")

COLLECTIONS = words("""
vintage stamps, snow globes, fossils, beer mats, fridge magnets, old maps, sea glass, comic books, postcards,
teapots, vinyl records, matchboxes, coins, banknotes, bottle caps, thimbles, porcelain dolls, tin soldiers, model
trains, baseball cards, film posters, theatre tickets, train tickets, autographs, butterflies, seashells, pressed
leaves, minerals, meteorites, arrowheads, typewriters, cameras, wristwatches, fountain pens, cufflinks, hats,
sneakers, band T-shirts, enamel pins, keyrings, patches, patchwork quilts, cookbooks, first editions, pulp novels,
atlases, board games, dice, playing cards, chess sets, marbles, yo-yos, robots, toy cars, Christmas baubles,
nutcrackers, candlesticks, oil lamps, salt shakers, egg cups, teaspoons, beer steins, whisky glasses, corkscrews,
sugar packets, airline sick bags, hotel keys, number plates, road signs, enamel signs, barbed wire, bricks, clocks,
music boxes, glass eyes, masks, puppets, kites, walking sticks, umbrellas
""")

DEGREES = words("""
marine biology, civil engineering, art history, philosophy, linguistics, astrophysics, economics, law, medicine,
pharmacy, nursing, architecture, anthropology, archaeology, geology, geography, meteorology, oceanography, zoology,
botany, genetics, biochemistry, chemistry, physics, mathematics, statistics, computer science, robotics, mechanical
engineering, chemical engineering, aerospace engineering, graphic design, fashion design, fine art, sculpture,
photography, film studies, theatre studies, music theory, musicology, comparative literature, creative writing,
journalism, media studies, political science, international relations, sociology, psychology, criminology, social
work, theology, classics, medieval history, Egyptology, Slavic studies, Japanese, Arabic, Hispanic studies,
translation, education, sports science, nutrition, dentistry, veterinary science, agriculture, forestry,
viticulture, hospitality management, accounting, marketing, logistics, urban planning, public health, epidemiology,
neuroscience, cognitive science, materials science, game design
""")

ALLERGENS = words("""
peanuts, shellfish, penicillin, latex, kiwi, bee stings, pollen, cat hair, dust mites, nickel, cashews, sesame, soy,
eggs, gluten, lactose, strawberries, tomatoes, mustard, lupin, sulphites, aspirin, ibuprofen, birch pollen, ragweed,
grass, mould, wool, horse hair, feathers, wasp stings, mosquito bites, hair dye, sunscreen, perfume, walnuts,
hazelnuts, almonds, pistachios, brazil nuts, crab, lobster, squid, salmon, cow's milk, wheat, rye, bananas, avocado,
melon, peaches, apples, cherries, carrots, garlic, cinnamon, red wine, chlorine, goose down, poppy seeds, chickpeas,
lentils, honey, yeast, mango skin, pineapple
""")

FEARS = words("""
spiders, heights, thunder, geese, clowns, darkness, flying, needles, snakes, moths, lifts, deep water, sharks,
ghosts, escalators, mirrors, dolls, wasps, crowds, public speaking, dentists, tunnels, bridges, balloons, fireworks,
jellyfish, mice, bats, pigeons, toads, earthworms, cockroaches, centipedes, scorpions, crocodiles, bears, wolves,
stray dogs, horses, cows, peacocks, seagulls, eels, crabs, leeches, quicksand, volcanoes, avalanches, lightning,
tornadoes, trapdoors, cellars, attics, graveyards, scarecrows, ventriloquists, puppets on strings, mannequins, masks
with long noses, cotton wool, buttons, holes in sponges, blood, hospitals, anaesthetics, open spaces, silence, cable
cars, ferries, motorways, roundabouts, driving at night, being alone, getting lost, parrots
""")

COLOURS = words("""
burnt orange, moss green, navy blue, mustard yellow, lilac, turquoise, maroon, teal, ivory, charcoal grey, coral,
mint green, crimson, indigo, magenta, olive green, salmon pink, cobalt blue, ochre, lavender, emerald green,
scarlet, beige, chocolate brown, sky blue, bottle green, rust red, plum purple, lemon yellow, peach, aquamarine,
fuchsia, sage green, terracotta, midnight blue, dusty rose, apricot, slate grey, chartreuse, cream, mauve,
periwinkle, sand, copper, gunmetal grey, forest green, cherry red, powder blue, saffron, eggshell white, jet black,
vermilion, cerulean, khaki, amber, ruby red, seafoam green, tangerine, violet, champagne
""")

TONGUES = words("""
Welsh, Finnish, Swahili, Basque, Portuguese, Japanese, Icelandic, Greek, Korean, Dutch, Hungarian, Turkish, Czech,
Gaelic, Catalan, Norwegian, Hindi, Arabic, Thai, Polish, Ukrainian, Hebrew, Mandarin, Quechua, Estonian, sign
language, Esperanto, Latin
""")
TRIPS = words("""
Patagonia, the Faroe Islands, Madagascar, the Galapagos, Mongolia, Bhutan, Namibia, Antarctica, the Azores, Kyoto,
Machu Picchu, Petra, Zanzibar, Greenland, New Zealand, Svalbard, the Okavango Delta, Tasmania, the Dolomites,
Lapland, Uzbekistan, Oman, the Silk Road, Easter Island, the Yukon, Jordan, Sri Lanka, Corsica
""")
VENTURES = words("""
a tea shop, a bookshop, a guest house, a bakery, a climbing gym, a repair cafe, a dance school, a vineyard, a
pottery studio, a food truck, a microbrewery, a dog hotel, a language school, a flower farm, a record label, a jazz
bar, a cheese dairy, a campsite
""")
FEATS = words("""
run a marathon, swim the Channel, write a novel, build a cabin, go skydiving, ride a camel, see the northern lights,
sail round the world, climb Kilimanjaro, hike the Pyrenees, cycle across Canada, learn to weld, learn to tango,
learn to fly a plane, learn to surf, learn the drums, learn beatboxing, adopt a greyhound, plant an orchard, restore
a lighthouse, record an album, publish a cookbook, live on a houseboat, drive Route 66, take the Trans-Siberian,
become a foster parent, train as a yoga teacher, go back to college, retire early, host a radio show, take part in a
triathlon, design a board game, paint a mural, dig a pond, volunteer abroad, build a canoe, get a pilot's licence,
get a tattoo, grow giant pumpkins, see a volcano erupt, sleep under the stars, compete in a chess open, act in a
play, direct a short film, walk the Camino, spend a winter in a monastery, ride the Orient Express, try ice
swimming, keep bees on the roof, give a TED talk
""")
