// Made by book/_tools/live_grammar.py from exformer.corpora.english_italian: the words of lesson 02.
"use strict";
globalThis.exformer ??= {};
exformer.englishItalianWords = {"nouns":{"animal":[["m",["dog","cane","il","al","un"],["dogs","cani","i","ai","molti"]],
["m",["cat","gatto","il","al","un"],["cats","gatti","i","ai","molti"]],
["m",["wolf","lupo","il","al","un"],["wolves","lupi","i","ai","molti"]],
["m",["lion","leone","il","al","un"],["lions","leoni","i","ai","molti"]],
["f",["fox","volpe","la","alla","una"],["foxes","volpi","le","alle","molte"]],
["f",["tiger","tigre","la","alla","una"],["tigers","tigri","le","alle","molte"]],
["f",["frog","rana","la","alla","una"],["frogs","rane","le","alle","molte"]],
["f",["goose","oca","l'","all'","un'"],["geese","oche","le","alle","molte"]]],
"place":[["m",["river","fiume","il","al","un"],["rivers","fiumi","i","ai","molti"]],
["m",["park","parco","il","al","un"],["parks","parchi","i","ai","molti"]],
["m",["lake","lago","il","al","un"],["lakes","laghi","i","ai","molti"]],
["f",["valley","valle","la","alla","una"],["valleys","valli","le","alle","molte"]],
["f",["hill","collina","la","alla","una"],["hills","colline","le","alle","molte"]],
["f",["island","isola","l'","all'","un'"],["islands","isole","le","alle","molte"]]]},"adjectives":{"animal":[["tired","stanco","stanchi","stanca","stanche"],["hungry","affamato","affamati","affamata","affamate"],["lazy","pigro","pigri","pigra","pigre"],["happy","felice","felici","felice","felici"]],
"place":[["wide","largo","larghi","larga","larghe"],["narrow","stretto","stretti","stretta","strette"],["deep","profondo","profondi","profonda","profonde"],["sunny","soleggiato","soleggiati","soleggiata","soleggiate"]]},"verbs":{"nothing":[["sleep","slept","dormì","dormirono"],["wait","waited","aspettò","aspettarono"],["eat","ate","mangiò","mangiarono"]],
"animal":[["follow","followed","seguì","seguirono"],["hear","heard","sentì","sentirono"],["find","found","trovò","trovarono"]],
"place":[["cross","crossed","attraversò","attraversarono"],["reach","reached","raggiunse","raggiunsero"],["visit","visited","visitò","visitarono"]]},"prepositions":{"near":"vicino","behind":"dietro","beyond":"oltre"}};
