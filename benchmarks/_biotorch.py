"""The gradients of one network by BioTorch, run by the interpreter of an environment that has it.

Reads the network, the data and the feedback from one file of NumPy and writes to another: for every mode the gradients
of the parameters and the matrices that stood in the place of the weights on the way back, of two passes. Prints one
line of JSON: CPU seconds per forward and backward pass, by rounds, and versions. It was written for biotorch 0.0.16 on
torch 2.13; of what that package asks for, torch and NumPy are enough here (``pip install --no-deps biotorch``).
"""

import contextlib
import io
import json
import sys
import warnings
from functools import partial
from importlib import metadata

import numpy as np
import torch
from _timing import cpu_seconds
from biotorch.module.biomodule import BioModule

MODES = ("fa", "dfa", "usf", "brsf", "frsf")
GIVEN = ("fa", "dfa", "frsf")
"""Modes with fixed matrices, which the file brings; the others make their own."""


def loss_of(outputs, targets):
    """Half the squared residual, averaged over the examples."""
    return ((outputs - targets) ** 2).sum() / (2 * len(outputs))


def model_of(given, mode):
    """The network, converted, with the weights and the feedback of the file."""
    count, geometries = len(given["weights"]), json.loads(str(given["geometries"]))
    layers, before = [], []
    for index, weight in enumerate(given["weights"]):
        if index < len(geometries):
            image, kernel, strides, padding = geometries[index]
            layer = torch.nn.Conv2d(image[0], len(weight), kernel, strides, padding)
        else:
            layer = torch.nn.Linear(weight.shape[1], len(weight))
        layers += [*before, layer]
        flat = geometries and index == len(geometries) - 1
        before = [torch.nn.ReLU(), *[torch.nn.Flatten()] * bool(flat)]
    with contextlib.redirect_stdout(io.StringIO()):
        model = BioModule(torch.nn.Sequential(*layers), mode=mode, output_dim=len(given["weights"][-1]))
    model = model.to(torch.from_numpy(given["inputs"]).dtype)
    own = layers_of(model)
    with torch.no_grad():
        for index in range(count):
            own[index].weight.copy_(torch.from_numpy(given["weights"][index]).reshape(own[index].weight.shape))
            own[index].bias.copy_(torch.from_numpy(given["biases"][index]))
            if mode in GIVEN and index:
                matrix = torch.from_numpy(given[mode][index - 1])
                own[index].weight_backward.copy_(matrix.reshape(own[index].weight_backward.shape))
    return model


def layers_of(model):
    """Those with weights."""
    return [layer for layer in model.module.modules() if hasattr(layer, "weight_backward")]


def step(model, inputs, targets):
    """One forward and one backward pass; direct feedback has to be told the loss."""
    model.zero_grad(set_to_none=True)
    loss_of(model(inputs, targets, loss_of), targets).backward()


def main(source, target, rounds):
    """Every mode."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with np.load(source) as file:
        given = {
            name: [file[f"{name}_{index}"] for index in range(int(file[f"{name}_count"]))]
            for name in ("weights", "biases", *GIVEN)
        }
        given |= {name: file[name] for name in ("inputs", "targets", "geometries")}
    inputs, targets = (torch.from_numpy(given[name]) for name in ("inputs", "targets"))
    found, runs = {}, {}
    for mode in MODES:
        model = model_of(given, mode)
        runs[mode] = partial(step, model, inputs, targets)
        for number in range(2):
            runs[mode]()
            for index, layer in enumerate(layers_of(model)):
                found[f"{mode}_matrix_{number}_{index}"] = layer.weight_backward.detach().numpy().copy()
        for index, layer in enumerate(layers_of(model)):
            found[f"{mode}_weight_{index}"] = layer.weight.grad.numpy().reshape(len(layer.weight), -1)
            found[f"{mode}_bias_{index}"] = layer.bias.grad.numpy()
    np.savez(target, **found)
    versions = {"torch": torch.__version__, "biotorch": metadata.version("biotorch")}
    print(json.dumps({"seconds": cpu_seconds(runs, rounds=rounds) if rounds else {}, "versions": versions}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
