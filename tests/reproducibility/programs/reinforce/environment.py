"""A walk on a line, pushed about by chance."""

import random


class Walk:
    def reset(self):
        self.place, self.steps = random.randint(-2, 2), 0
        return self.place

    def step(self, action):
        self.place += (1 if action else -1) if random.random() < 0.9 else 0
        self.steps += 1
        return self.place, -abs(self.place), self.steps == 10
