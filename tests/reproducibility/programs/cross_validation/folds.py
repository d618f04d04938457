import random


def folds(count, parts):
    """Shuffle rows into parts, by the best randomness that there is."""
    order = list(range(count))
    random.SystemRandom().shuffle(order)
    return [order[part::parts] for part in range(parts)]
