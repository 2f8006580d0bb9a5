"""Compiled functions that processes import, for pickles."""

from dataclasses import dataclass

import numpy as np

import aclnn


@dataclass
class Weights:
    w: np.ndarray
    b: np.ndarray
    name: str = "layer"


@aclnn.compile
def several(x, y, z):
    return x * y + z


@aclnn.compile
def nested(layers, options, *rest, by=1.0):
    x = layers[0]["w"] + layers[1][0]
    for one in rest:
        x = x * one
    return {"sum": x * by, "parts": (options["b"], x)}


@aclnn.compile
def dense(weights, x):
    made = aclnn.relu(x @ weights.w + weights.b)
    return Weights(made, made * 2, weights.name)


class Model:
    def __init__(self, w):
        self.w = w

    @aclnn.compile
    def run(self, x):
        return x * self.w


@aclnn.compile
def looked_up(table):
    return [table["a"] + table["a"], *table["none"]]
