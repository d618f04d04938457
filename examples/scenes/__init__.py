"""Classify outdoor scenes: a small convolutional network with an attention head."""
