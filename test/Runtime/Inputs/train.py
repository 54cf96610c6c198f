"""spmd.load without PyTorch. argv: artifact, file to save."""
import sys

import numpy as np

import spmd.run.runtime

assert "torch" not in sys.modules
with spmd.run.runtime.Trainer(sys.argv[1]) as trainer:
    print(trainer.ranks, "ranks")
    x, t = np.arange(14).reshape(7, 2) % 11, np.full((7, 3), 0.25, np.float32)
    try:
        trainer.step(np.zeros((8, 2), np.int64), t)
    except spmd.run.runtime.RunError as error:
        print(error)
    first, prediction = trainer.run([x, t])
    for _ in range(10):
        trainer.set_hyper("lr", 0, 0.05)
        last, prediction = trainer.run([x, t])
    print("loss fell:", bool(last < first))
    print("prediction", prediction.shape)
    weight = trainer.read("param", "fc1.bias")
    weight[2] = 42
    trainer.write("param", "fc1.bias", weight)
    print("wrote", trainer.read("param", "fc1.bias")[2])
    trainer.save_parameters(sys.argv[2])
