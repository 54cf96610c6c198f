//===- SpmdAttrs.td - roles, layouts, sharding states --------*- tablegen -*-===//

#ifndef SPMD_ATTRS_TD
#define SPMD_ATTRS_TD

include "dialects/Spmd/SpmdDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"

class Spmd_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Spmd_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Spmd_ReduceKindAttr : EnumAttr<Spmd_Dialect, Spmd_ReduceKind, "reduce_kind">;
def Spmd_StreamAttr : EnumAttr<Spmd_Dialect, Spmd_Stream, "stream"> {
  let assemblyFormat = "``$value";
}
def Spmd_UnitModeAttr : EnumAttr<Spmd_Dialect, Spmd_UnitMode, "unit_mode">;

//===----------------------------------------------------------------------===//
// Roles of arguments (`spmd.arg`)
//===----------------------------------------------------------------------===//

def Spmd_ParamAttr : Spmd_Attr<"Param", "param"> {
  let summary = "a parameter, by its fully qualified name";
  let description = [{
    `#spmd.param<"fc.weight", trainable>`. A tied parameter is one argument, under
    its first name; the module attribute `spmd.tied` lists the others.
  }];
  let parameters = (ins StringRefParameter<"fully qualified name">:$name,
                        "bool":$trainable);
  let assemblyFormat = "`<` $name `` custom<Trainable>($trainable) `>`";
}

def Spmd_BufferAttr : Spmd_Attr<"Buffer", "buffer"> {
  let summary = "a module buffer, by its fully qualified name";
  let description = [{
    `#spmd.buffer<"bn.running_mean">`, or `#spmd.buffer<"order", persistent = false>`:
    part of no state dict (`register_buffer(persistent=False)`), so no saved file has it.
  }];
  let parameters = (ins StringRefParameter<"fully qualified name">:$name,
                        DefaultValuedParameter<"bool", "true">:$persistent);
  let assemblyFormat = "`<` $name (`,` `persistent` `=` $persistent^)? `>`";
}

def Spmd_ConstantAttr : Spmd_Attr<"Constant", "constant"> {
  let summary = "a constant tensor the capture met, never written";
  let parameters = (ins StringRefParameter<"name">:$name);
  let assemblyFormat = "`<` $name `>`";
}

def Spmd_StateAttr : Spmd_Attr<"State", "state"> {
  let summary = "optimizer state of one parameter";
  let description = [{
    `#spmd.state<"exp_avg", of = "fc.weight", init = 0.0>`. `init` is the value of
    every element before the first step when no weights file has it; without `init`
    the weights file must have it. A `master` begins as its parameter.
  }];
  let parameters = (ins StringRefParameter<"state name">:$state,
                        StringRefParameter<"parameter">:$of,
                        OptionalParameter<"::mlir::FloatAttr">:$init);
  let assemblyFormat = "`<` $state `,` `of` `=` $of (`,` `init` `=` $init^)? `>`";
  let extraClassDeclaration = [{
    /// What a step leaves of the parameter's gradient for a later one.
    bool isGradient() const { return getState() == "grad"; }
    /// The parameter in a wider type, which the optimizer updates: the parameter is its rounding.
    bool isMaster() const { return getState() == "master"; }
  }];
}

def Spmd_HyperAttr : Spmd_Attr<"Hyper", "hyper"> {
  let summary = "a hyper-parameter of an optimizer param group, set at every step";
  let parameters = (ins StringRefParameter<"name">:$name, "int64_t":$group,
                        OptionalParameter<"::mlir::FloatAttr">:$value);
  let assemblyFormat =
      "`<` $name `,` `group` `=` $group (`,` `value` `=` $value^)? `>`";
}

def Spmd_RngAttr : Spmd_Attr<"Rng", "rng"> {
  let summary = "what random numbers are a function of: the seed, or the count of training steps";
  let description = [{
    `#spmd.rng<"seed", init = 42>` and `#spmd.rng<"step", init = 0>`: 0-dimensional i64,
    the same on all ranks. The step counts itself up; `init` is the value when the
    weights file does not have it.
  }];
  let parameters = (ins StringRefParameter<"seed or step">:$name,
                        "int64_t":$init);
  let assemblyFormat = "`<` $name `,` `init` `=` $init `>`";
}

def Spmd_BatchAttr : Spmd_Attr<"Batch", "batch"> {
  let summary = "a batch input; dim is the batch dimension, none when all ranks share it";
  let description = [{
    `dim` decides only where the rows of the batch live: a wrong dimension costs
    communication, never a wrong result. In C++ none is -1.
  }];
  let parameters = (ins StringRefParameter<"name">:$name, "int64_t":$dim);
  let assemblyFormat = "`<` $name `,` `dim` `=` custom<BatchDim>($dim) `>`";
}

def Spmd_ShardAttr : Spmd_Attr<"Shard", "shard"> {
  let summary = "this rank's chunk of a unit's flat buffer";
  let description = [{
    `#spmd.shard<@unit0, "param">` or a state name instead of `param`; `init` as in
    `#spmd.state`.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$unit,
                        StringRefParameter<"param or state name">:$state,
                        OptionalParameter<"::mlir::FloatAttr">:$init);
  let assemblyFormat = "`<` $unit `,` $state (`,` `init` `=` $init^)? `>`";
}

def Spmd_TableAttr : Spmd_Attr<"Table", "table"> {
  let summary = "one entry per segment of a unit, the same on all ranks";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$unit,
                        StringRefParameter<"state name">:$state,
                        OptionalParameter<"::mlir::FloatAttr">:$init);
  let assemblyFormat = "`<` $unit `,` $state (`,` `init` `=` $init^)? `>`";
}

//===----------------------------------------------------------------------===//
// Roles of results (`spmd.result`)
//===----------------------------------------------------------------------===//

def Spmd_LossAttr : Spmd_Attr<"Loss", "loss"> {
  let summary = "the loss; path is its place in the value the step returns";
  let parameters = (ins StringRefParameter<"pytree path">:$path);
  let assemblyFormat = "`<` $path `>`";
}

def Spmd_OutputAttr : Spmd_Attr<"Output", "output"> {
  let summary = "any other output; path is its place in the returned value";
  let parameters = (ins StringRefParameter<"pytree path">:$path);
  let assemblyFormat = "`<` $path `>`";
}

def Spmd_UpdateAttr : Spmd_Attr<"Update", "update"> {
  let summary = "the new value of the argument that has this role";
  let description = [{
    `#spmd.update<#spmd.param<"fc.weight", trainable>>`: result and argument share
    storage; nothing reads the old value after the new one is written.
  }];
  let parameters = (ins "::mlir::Attribute":$arg);
  let assemblyFormat = "`<` $arg `>`";
}

//===----------------------------------------------------------------------===//
// Flat layout of a unit
//===----------------------------------------------------------------------===//

def Spmd_SegmentAttr : Spmd_Attr<"Segment", "segment"> {
  let summary = "one parameter's place in a unit's flat buffer";
  let description = [{
    `offset` and `numel` count elements; `group` is the optimizer param group, -1
    when no optimizer updates the parameter. With `tensor` the parameter is cut over
    the tensor axis of the mesh: `shape` is that of a rank's part, and the sharding
    says how the parts make the parameter.
  }];
  let parameters = (ins StringRefParameter<"parameter">:$name,
                        ArrayRefParameter<"int64_t">:$shape, "int64_t":$group,
                        "int64_t":$offset, "int64_t":$numel, "bool":$trainable,
                        OptionalParameter<"::spmd::ShardingAttr">:$tensor);
  let assemblyFormat = [{
    `<` $name `,` `shape` `=` custom<IntList>($shape) `,` `group` `=` $group `,`
    `offset` `=` $offset `,` `numel` `=` $numel `,` `trainable` `=` $trainable
    (`,` `tensor` `=` qualified($tensor)^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Spmd_FlatAttr : Spmd_Attr<"Flat", "flat"> {
  let summary = "layout of a unit's flat buffer: its segments in order";
  let description = [{
    Segments are sorted by optimizer group, in registration order within a group.
    Every offset is a multiple of 128 elements; `padded` is a multiple of
    128 × ranks. Elements that belong to no segment are padding and stay neutral.
  }];
  let parameters = (ins "::mlir::Type":$dtype, "int64_t":$padded,
                        ArrayRefParameter<"::spmd::SegmentAttr">:$segments);
  let assemblyFormat =
      "`<` $dtype `,` `padded` `=` $padded `,` custom<Segments>($segments) `>`";
  let genVerifyDecl = 1;
}

def Spmd_AnnotationAttr : Spmd_Attr<"Annotation", "annotation"> {
  let summary = "what the model's author said of one unit in Python";
  let description = [{
    `#spmd.annotation<modules = ["norm", "head"], reshard = 0, ignored = ["head.scale"]>`,
    in the module attribute `spmd.annotations`, from `fully_shard` or `wrap`.
    `reshard` is 1 to free gathered parameters between forward and backward, 0 to
    keep them, or the size of a group of ranks; `precision` as in `spmd.shard_unit`;
    `mesh` the sizes of the axes of the mesh that was named: [shard] or
    [replicate, shard]. `reached`: nobody said it; the
    modules are reached by the step without being the model's, and are a unit
    whatever a policy chooses beside and inside of them.
  }];
  let parameters = (ins "::mlir::ArrayAttr":$modules,
                        OptionalParameter<"::mlir::ArrayAttr">:$ignored,
                        OptionalParameter<"::mlir::StringAttr">:$mode,
                        OptionalParameter<"::mlir::IntegerAttr">:$reshard,
                        OptionalParameter<"::mlir::DictionaryAttr">:$precision,
                        OptionalParameter<"::mlir::IntegerAttr">:$prefetch,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$mesh,
                        OptionalParameter<"::mlir::UnitAttr">:$reached);
  let assemblyFormat = "`<` struct(params) `>`";
}

//===----------------------------------------------------------------------===//
// Sharding of a value
//===----------------------------------------------------------------------===//

def Spmd_ShardingAttr : Spmd_Attr<"Sharding", "sharding",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "global shape of a value and its state on every mesh axis";
  let description = [{
    The encoding of a tensor type in a partitioned function; the type's own shape is
    the local one. One state per axis of the mesh; of a mesh of several axes one state
    alone is that of all its ranks, in the order of their numbers:

    * `replicated`: every rank has the whole value;
    * `shard<dim, pre, chunk>`: dimension `dim` is read as [pre][total]; `total` is
      cut into chunks of `chunk` rows, this rank has the one of its coordinate (rows
      past the end are padding);
    * `partial<kind>`: the value is the combination by `kind` of all ranks' values;
    * `owned`: this rank's chunk of a unit's flat buffer;
    * `varying`: every rank has a value of its own, and there is no global one: what a
      rank computes from its rows when the captured step is one rank's (`view=local`).
      The global shape is the local one.

    ```mlir
    tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>>
    // of a mesh ["replicate" = 2, "shard" = 4]: a chunk, and its gradient before it is summed across "replicate"
    tensor<256xf32, #spmd.sharding<global = [1024], [replicated, owned]>>
    tensor<256xf32, #spmd.sharding<global = [1024], [partial<sum>, owned]>>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$globalShape,
                        ArrayRefParameter<"::spmd::AxisState">:$states);
  let assemblyFormat = [{
    `<` `global` `=` custom<IntList>($globalShape) `,` custom<States>($states) `>`
  }];
}

//===----------------------------------------------------------------------===//
// Locations
//===----------------------------------------------------------------------===//

def Spmd_SrcAttr : Spmd_Attr<"Src", "src"> {
  let summary = "module path of an op, as metadata of a fused location";
  let description = [{
    `loc(fused<#spmd.src<"h.0.attn">>["train.py":10:3])`. For messages only: no
    pass decides anything from it.
  }];
  let parameters = (ins StringRefParameter<"module path">:$module);
  let assemblyFormat = "`<` $module `>`";
}

#endif // SPMD_ATTRS_TD
