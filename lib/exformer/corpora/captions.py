"""Forty English captions in the style of Multi30k, with German translations, to try translators on."""

from exformer.corpora.examples import Pair

_LINES = """
A dog runs across a green field.
Ein Hund rennt über ein grünes Feld.
Two children are building a snowman.
Zwei Kinder bauen einen Schneemann.
A man in a red shirt is playing the guitar.
Ein Mann in einem roten Hemd spielt Gitarre.
A woman is reading a book on a bench.
Eine Frau liest auf einer Bank ein Buch.
Three girls are dancing on a stage.
Drei Mädchen tanzen auf einer Bühne.
A boy is jumping into a swimming pool.
Ein Junge springt in ein Schwimmbecken.
An old man is sitting in front of a shop.
Ein alter Mann sitzt vor einem Geschäft.
A young woman is riding a brown horse.
Eine junge Frau reitet auf einem braunen Pferd.
People are waiting at a bus stop.
Menschen warten an einer Bushaltestelle.
A black cat is sleeping on a chair.
Eine schwarze Katze schläft auf einem Stuhl.
A man with a hat is standing on a ladder.
Ein Mann mit Hut steht auf einer Leiter.
Two women are talking in the street.
Zwei Frauen unterhalten sich auf der Straße.
A little girl in a blue dress is eating an apple.
Ein kleines Mädchen in einem blauen Kleid isst einen Apfel.
A brown dog is swimming in the lake.
Ein brauner Hund schwimmt im See.
Four men are playing cards at a table.
Vier Männer spielen an einem Tisch Karten.
A worker in an orange vest is repairing the road.
Ein Arbeiter in einer orangefarbenen Weste repariert die Straße.
A boy with glasses is looking through a window.
Ein Junge mit Brille schaut durch ein Fenster.
A group of people is walking through the forest.
Eine Gruppe von Menschen geht durch den Wald.
A woman in a white coat is holding a baby.
Eine Frau in einem weißen Mantel hält ein Baby.
Two dogs are fighting over a ball.
Zwei Hunde kämpfen um einen Ball.
A girl is painting a picture of a house.
Ein Mädchen malt ein Bild von einem Haus.
A man is cooking in a small kitchen.
Ein Mann kocht in einer kleinen Küche.
A child is standing between two trees.
Ein Kind steht zwischen zwei Bäumen.
A cyclist is riding down a steep hill.
Ein Radfahrer fährt einen steilen Hügel hinunter.
A football player in a yellow jersey is kicking the ball.
Ein Fußballspieler in einem gelben Trikot schießt den Ball.
Several tourists are taking photos of a church.
Mehrere Touristen machen Fotos von einer Kirche.
A woman with long hair is playing the piano.
Eine Frau mit langen Haaren spielt Klavier.
A small boat is sailing on the river.
Ein kleines Boot segelt auf dem Fluss.
A man is sleeping on a sofa.
Ein Mann schläft auf einem Sofa.
Two boys are building a castle in the sand.
Zwei Jungen bauen eine Burg im Sand.
A waiter is carrying a tray with glasses.
Ein Kellner trägt ein Tablett mit Gläsern.
A girl in a pink jacket is climbing a rock.
Ein Mädchen in einer rosa Jacke klettert auf einen Felsen.
A crowd is watching a concert at night.
Eine Menschenmenge sieht sich nachts ein Konzert an.
A man and a woman are dancing in the rain.
Ein Mann und eine Frau tanzen im Regen.
A white dog is catching a red ball in the air.
Ein weißer Hund fängt einen roten Ball in der Luft.
An elderly couple is walking along the beach.
Ein älteres Paar geht am Strand entlang.
A boy is pushing a shopping cart through the supermarket.
Ein Junge schiebt einen Einkaufswagen durch den Supermarkt.
Two workers are standing on the roof of a house.
Zwei Arbeiter stehen auf dem Dach eines Hauses.
A woman is buying vegetables at the market.
Eine Frau kauft auf dem Markt Gemüse.
A man in a black suit is talking on the phone.
Ein Mann in einem schwarzen Anzug telefoniert.
"""


def captions() -> list[Pair]:
    """Return English captions with a German translation of each, in the style of Multi30k's.

    They were written for this library; none was taken from Multi30k. One right translation stands for many.

    >>> captions()[1].target
    'Zwei Kinder bauen einen Schneemann.'
    """
    lines = _LINES.strip().splitlines()
    return list(map(Pair, lines[::2], lines[1::2]))
