"""All private names of PyTorch that this package uses, one file a topic.

PyTorch may rename or remove such a name in any release. The other modules import them from here, so a new release
requires changes in this folder only; test/Python/test_torch_api.py rejects private names anywhere else.
`torch.fx.experimental` counts as private, too. Operators (torch.ops.aten._conj) are the vocabulary of a graph and are
not listed here.

    tracing       fake tensors, the tracer, dispatch modes, pytree, graphs of torch.fx
    shapes        symbolic shapes
    operators     schemas, names, custom operators
    tensors       versions, views, storages
    modules       tables of a module, hooks, torch.compile's modules
    autograd      nodes, the running backward()
    flex_attention FlexAttention and variable-length attention
    optimizers    hooks of step(), GradScaler
    replaced      functions and flags that a trace replaces
    settings      oneDNN, data loaders
    distributed   process groups
    fsdp          wrap policies
    fsdp_options  options in modules and in MixedPrecision

A name that PyTorch spells without an underscore keeps its spelling, `_name` becomes `name`, and an attribute of
instances becomes a function `..._of(instance)`. Many of them run at each operator of a trace or at each call of a
compiled step: these are PyTorch's own functions or an `operator.attrgetter`, which add no Python frame.

Modules that take long to import (torch.distributed, torch._dynamo, symbolic shapes) are imported by their topic's file,
or by the function that requires them.
"""
