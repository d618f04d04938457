SENTENCES = ["a rose is a rose", "is a rose a flower", "the flower is red", "red is the rose"]


def vocabulary():
    words = set()
    for sentence in SENTENCES:
        words.update(sentence.split())
    return {word: number for number, word in enumerate(words)}
