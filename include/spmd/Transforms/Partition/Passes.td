//===- Passes.td - from the global step to one rank's program *- tablegen -*-===//

#ifndef SPMD_TRANSFORMS_PARTITION_PASSES_TD
#define SPMD_TRANSFORMS_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def DynamicBatch : Pass<"spmd-dynamic-batch", "::mlir::ModuleOp"> {
  let summary = "lets the program of the largest batch serve smaller ones";
  let description = [{
    A step that was captured for batches of several sizes has a batch input that is the
    number of rows there are; `spmd.dynamic_batch` names it, and the module
    `@other_batch` is the same step captured with another number of rows. The pass finds
    by comparing the two what depends on the rows, and makes the step exact for any
    number of them up to its own: what is behind the last row may be anything, so

    - an op that adds rows up, or takes the largest, gets the neutral element in the
      rows that are not there, by select (`masked_fill`);
    - a mean over rows is a sum that is divided by the number of rows there are, and so
      is every number that the two captures have in proportion to it, or inversely;
    - an op that needs all rows at once, a shape or a number that depends on the batch
      in another way, and a result that keeps rows in more than one place are errors
      that name the op.

    Input: a captured `@step` on global shapes, of any module without
    `spmd.dynamic_batch`: nothing is done. Output: `@step` for every number of rows,
    which the runtime checks to be one, without the attribute and without
    `@other_batch`; in its outputs, rows that are not there hold anything.

    Why on the captured step: the rules of the ops say where rows go, as they do for the
    partition, and everything behind this pass sees a step like any other.

    ```mlir
    // spmd-opt --spmd-dynamic-batch
    module attributes {spmd.dynamic_batch = {rows = "rows", size = 8}} {
      func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                      %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<f32> {
        %loss = aten.mean.dim %x {dim = array<i64: 0, 1>, keepdim = false} : (tensor<8x4xf32>) -> tensor<f32>
        return %loss : tensor<f32>
      }
      module @other_batch attributes {spmd.dynamic_batch = {rows = "rows", size = 7}} {
        func.func @step(%x: tensor<7x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                        %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<f32> {
          %loss = aten.mean.dim %x {dim = array<i64: 0, 1>, keepdim = false} : (tensor<7x4xf32>) -> tensor<f32>
          return %loss : tensor<f32>
        }
      }
    }
    // becomes
    func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>, spmd.index_bound = 9 : i64})
        -> tensor<f32> {
      %n = aten._to_copy %rows {dtype = f64} : (tensor<i64>) -> tensor<f64>
      %elements = aten.mul.Scalar %n {other = 4.0 : f64} : (tensor<f64>) -> tensor<f64>
      %count = aten._to_copy %elements {dtype = f32} : (tensor<f64>) -> tensor<f32>
      %numbers = aten.arange.start_step {end = 8, start = 0} : () -> tensor<8xi64>
      %padding = aten.ge.Tensor %numbers, %rows : (tensor<8xi64>, tensor<i64>) -> tensor<8xi1>
      %column = aten.view %padding {size = array<i64: 8, 1>} : (tensor<8xi1>) -> tensor<8x1xi1>
      %own = aten.masked_fill.Scalar %x, %column {value = 0.0 : f64}
          : (tensor<8x4xf32>, tensor<8x1xi1>) -> tensor<8x4xf32>
      %sum = aten.sum.dim_IntList %own {dim = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32>
      %loss = aten.div.Tensor %sum, %count : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::spmd::aten::AtenDialect"];
}

def SplitMeans : Pass<"spmd-split-means", "::mlir::ModuleOp"> {
  let summary = "splits means into a sum and a division by the global count";
  let description = [{
    A mean over sharded rows is not the mean of the ranks' means when ranks have
    different numbers of rows. As a sum and a division it partitions exactly: the
    sum is a partial one, and the count is a constant of the global shape, or, for
    `nll_loss`, the total weight, which is itself a sum.

    Input: `@step` on global shapes. Output: the same without mean.dim and
    var_mean (the mean, then the mean of squares of what is left), and without
    losses that reduce by mean. `nll_loss_backward` stays: it divides by its operand
    `total_weight`, which is the global one.

    ```mlir
    // spmd-opt --spmd-split-means
    func.func @step(%x: tensor<8x4xf32>, %t: tensor<8x4xf32>) -> tensor<f32> {
      %loss = aten.mse_loss %x, %t {reduction = 1} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    // becomes
    func.func @step(%x: tensor<8x4xf32>, %t: tensor<8x4xf32>) -> tensor<f32> {
      %sum = aten.mse_loss %x, %t {reduction = 2} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>
      %loss = aten.div.Scalar %sum {other = 32} : (tensor<f32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    ```
  }];
}

def PartitionTensor : Pass<"spmd-partition-tensor", "::mlir::ModuleOp"> {
  let summary = "turns the step into that of one rank along the tensor axis";
  let description = [{
    Parameters that are placed on the tensor axis of the mesh are cut in one
    dimension, and the rest of the step follows by the ops' sharding rules: their
    gradients and optimizer state are cut alike, activations are cut behind a product
    whose weight is cut in its outputs, and partial sums behind one whose weight is
    cut in its inputs. A partial sum is reduced where it first must be whole. A block
    of a transformer whose attention and whose MLP each are such a pair has two
    all-reduces in forward, and two in backward.

    Over a dimension that is cut, softmax and means are a largest value, sums and
    arithmetic. An embedding whose table is cut in rows, and a loss over classes that
    are cut, look up those of a rank and have 0 for the others.

    Input: `@step` on the whole batch, without a mesh.

    Output: `@step` on the whole batch, of a rank's parts of parameters, with
    `spmd.all_reduce` and `spmd.slice` along the tensor axis of a new `spmd.mesh`, and
    `spmd.tensor_cut` on arguments that are parts. `spmd-assign-shard-units` adds the
    other axes, and cuts what the rank has along these. Without a tensor axis in
    `mesh` nothing is done.

    Nothing that is cut is gathered: an op that needs it whole is an error at the op,
    and so is a gradient that is cut where its parameter is not.

    Why before the units: a unit's flat buffer is laid out of what a rank has, so that
    the rest of the compiler sees smaller parameters and nothing else.

    ```mlir
    // spmd-opt --spmd-partition-tensor="mesh=shard:2,tensor:2 override-placements=w=shard(0)"
    // loss = sum(x w), of which each rank of the tensor axis has two rows of w.
    func.func @step(%w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w">},
                    %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
        -> (tensor<8x16xf32> {spmd.result = #spmd.output<"">}) {
      %y = aten.mm %x, %w {spmd.segment = 0} : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
      return %y : tensor<8x16xf32>
    }
    // becomes
    spmd.mesh @mesh ["tensor" = 2] tensor "tensor"
    func.func @step(%w: tensor<2x16xf32> {spmd.arg = #spmd.param<"w">,
                                          spmd.tensor_cut = #spmd.sharding<global = [4, 16], [shard<0, 1, 2>]>},
                    %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
        -> (tensor<8x16xf32> {spmd.result = #spmd.output<"">}) {
      %part = spmd.slice %x on @mesh ["tensor"] dim 1 pre 1 chunk 2 {spmd.segment = 0}
          : tensor<8x4xf32> -> tensor<8x2xf32>
      %sum = aten.mm %part, %w {spmd.segment = 0} : (tensor<8x2xf32>, tensor<2x16xf32>) -> tensor<8x16xf32>
      %y = spmd.all_reduce [sum] %sum on @mesh ["tensor"] {spmd.segment = 0}
          : (tensor<8x16xf32>) -> tensor<8x16xf32>
      return %y : tensor<8x16xf32>
    }
    ```
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", "\"\"",
           "how the ranks are arranged; nothing is done without tensor:T in it">,
    Option<"overridePlacements", "override-placements", "std::string", "\"\"",
           "PATTERN=shard(DIM), PATTERN=shard(DIM,PARTS) or PATTERN=replicate, by comma; the first pattern that matches "
           "a parameter decides">,
    Option<"policyFile", "policy-file", "std::string", "\"\"",
           "JSON file that has them, where override-placements is empty">,
    Option<"view", "view", "std::string", "\"global\"", "global; with local a tensor axis is an error">,
  ];
  let dependentDialects = ["::spmd::SpmdDialect"];
}

def Partition : Pass<"spmd-partition", "::mlir::ModuleOp"> {
  let summary = "turns the global step into the program of one rank";
  let description = [{
    Every value gets a *state* on the mesh: replicated, sharded in one dimension,
    partial (to be combined over the ranks), or owned (a chunk of a unit's flat
    buffer). States follow from roles alone: batch inputs are sharded, parameters
    and optimizer state are owned, everything else starts replicated. The sharding
    rule of each op says in which states it can run; where the operands are in other
    states a collective converts them. Whatever the roles say, the result is right:
    a batch dimension that is none costs communication only.

    Input: `@step` without means (`spmd-split-means`), with shard units
    (`spmd-assign-shard-units`) and list-form optimizer ops.

    Output: `@step` with one flat argument per unit and state, local shapes, a
    `#spmd.sharding` on every tensor, and explicit collectives: an all_gather at
    every use of a parameter, one reduce_scatter per unit, all_reduces at the first
    use of a partial value that must be whole. `spmd-dedup-collectives` comes next.

    Warns when an activation is gathered, and when matrix products run replicated.

    With `view=local` the captured step is what one rank does with its rows. Values
    computed from them are *varying*, gradients are reduced as above and divided by
    the number of ranks, or by `gradient-divide-factor`, and nothing else
    communicates: FSDP's own semantics.

    A gradient that a step leaves to a later one is its parameters' chunk, like any
    state of theirs. With `accumulate=unsharded` it is an argument and a result of
    its own, a partial sum of which each rank has a summand: a step that adds to it
    communicates nothing, and the one that updates reduces what has been added up
    (FSDP2's `set_requires_gradient_sync(False)`). With `accumulate=scattered`, on a
    mesh of two axes, it is a chunk, and ranks along the first axis have summands of
    it: a step that adds to it reduces along the second axis alone, and the one that
    updates all-reduces what has been added up along the first, once for a unit
    (FSDP2's `set_requires_all_reduce(False)`).

    Why on the whole step: forward, backward and optimizer are one function here, so
    one mechanism makes gathers, gradient reductions and sharded optimizer state.

    ```mlir
    // spmd-opt --spmd-partition
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
    // loss = sum(x w * t), whose gradient in w is the product of x transposed and t; one step of SGD.
    func.func @step(%w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w", trainable>},
                    %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %t: tensor<8x16xf32> {spmd.arg = #spmd.batch<"t", dim = 0>})
        -> (tensor<f32> {spmd.result = #spmd.loss<"">},
            tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
      %y = aten.mm %x, %w {spmd.segment = 0} : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
      %yt = aten.mul.Tensor %y, %t {spmd.segment = 0} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %loss = aten.sum.dim_IntList %yt {dim = array<i64: 0, 1>, spmd.segment = 0} : (tensor<8x16xf32>) -> tensor<f32>
      %xt = aten.permute %x {dims = array<i64: 1, 0>, spmd.segment = 1} : (tensor<8x4xf32>) -> tensor<4x8xf32>
      %dw = aten.mm %xt, %t {spmd.segment = 1} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
      %w1 = aten._foreach_add.List %w, %dw {alpha = -0.1, spmd.segment = 2}
          : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
      return %loss, %w1 : tensor<f32>, tensor<4x16xf32>
    }
    // becomes
    #owned = #spmd.sharding<global = [256], [owned]>
    #scalar = #spmd.sharding<global = [], [replicated]>
    #x = #spmd.sharding<global = [8, 4], [shard<0, 1, 4>]>
    #xt = #spmd.sharding<global = [4, 8], [shard<1, 1, 4>]>
    #y = #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>
    #flat = #spmd.sharding<global = [256], [replicated]>
    #w = #spmd.sharding<global = [4, 16], [replicated]>
    #partial_loss = #spmd.sharding<global = [], [partial<sum>]>
    #partial_dw = #spmd.sharding<global = [4, 16], [partial<sum>]>
    #partial_flat = #spmd.sharding<global = [256], [partial<sum>]>
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
    func.func @step(%shard: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "param">},
                    %x: tensor<4x4xf32, #x> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %t: tensor<4x16xf32, #y> {spmd.arg = #spmd.batch<"t", dim = 0>})
        -> (tensor<f32, #scalar> {spmd.result = #spmd.loss<"">},
            tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "param">>}) {
      %flat = spmd.all_gather %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 0}
          : tensor<128xf32, #owned> -> tensor<256xf32, #flat>
      %w = spmd.unpack %flat unit @unit0 ["w"] {spmd.segment = 0} : tensor<256xf32, #flat> -> tensor<4x16xf32, #w>
      %y = aten.mm %x, %w {spmd.segment = 0} : (tensor<4x4xf32, #x>, tensor<4x16xf32, #w>) -> tensor<4x16xf32, #y>
      %yt = aten.mul.Tensor %y, %t {spmd.segment = 0}
          : (tensor<4x16xf32, #y>, tensor<4x16xf32, #y>) -> tensor<4x16xf32, #y>
      %sum = aten.sum.dim_IntList %yt {dim = array<i64: 0, 1>, spmd.segment = 0}
          : (tensor<4x16xf32, #y>) -> tensor<f32, #partial_loss>
      %xt = aten.permute %x {dims = array<i64: 1, 0>, spmd.segment = 1} : (tensor<4x4xf32, #x>) -> tensor<4x4xf32, #xt>
      %dw = aten.mm %xt, %t {spmd.segment = 1}
          : (tensor<4x4xf32, #xt>, tensor<4x16xf32, #y>) -> tensor<4x16xf32, #partial_dw>
      %packed = spmd.pack %dw unit @unit0 ["w"] {spmd.segment = 1}
          : (tensor<4x16xf32, #partial_dw>) -> tensor<256xf32, #partial_flat>
      %grad = spmd.reduce_scatter sum %packed on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 {spmd.segment = 1}
          : tensor<256xf32, #partial_flat> -> tensor<128xf32, #owned>
      %shard1 = aten._foreach_add.List %shard, %grad {alpha = -0.1, spmd.segment = 2, unit = @unit0}
          : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
      %loss = spmd.all_reduce [sum] %sum on @mesh ["data"] {spmd.segment = 2 : i64}
          : (tensor<f32, #partial_loss>) -> tensor<f32, #scalar>
      return %loss, %shard1 : tensor<f32, #scalar>, tensor<128xf32, #owned>
    }
    ```
  }];
  let options = [
    Option<"view", "view", "std::string", "\"global\"",
           "what the captured batch is: global (all ranks' rows together), local (one rank's)">,
    Option<"accumulate", "accumulate", "std::string", "\"sharded\"",
           "gradients that outlive the step: sharded, reduced in each step that adds to them; scattered, so along the "
           "axis along which units are cut, and along the one before where they are read; unsharded, each rank has a "
           "summand of its own">,
    Option<"gradientDivideFactor", "gradient-divide-factor", "double", "0",
           "with view=local, what sums of gradients are divided by; 0: the number of ranks">,
  ];
  let dependentDialects = ["::spmd::SpmdDialect", "::spmd::aten::AtenDialect"];
}

def VerifyPartition : Pass<"spmd-verify-partition", "::mlir::ModuleOp"> {
  let summary = "checks what must hold of a partitioned step";
  let description = [{
    Checks, on the program between spmd-partition and spmd-strip-sharding:

    1. every tensor has a `#spmd.sharding` for the mesh: one state of all ranks, or on
       several axes that of a chunk, or of what is partial along those on which units
       are cut, with what holds along the one before;
    2. no partial value reaches an op that is not linear in it, partial operands of
       one op have one kind, and a multilinear op has at most one;
    3. collectives start from the state they need and give the one they make, on the
       axes of that state, whose ranks' chunks make the buffer, and the reduce kind is
       the partial kind;
    4. a dimension of a result is sharded only where an operand's dimension of the
       same factor is;
    5. a contraction over padded rows has the neutral element in them;
    6. chunk operands of one list op are of its unit and have one size, and its numbers
       are whole;
    7. each parameter of an updated unit is packed into at most one gradient
       reduction, of its own unit; a pack of partial gradients is reduced once, and
       nothing else reads it; on two axes the scattered sum is added up across the
       first, and nothing else reads it before;
    8. results of `@step` that are not chunks are replicated, or varying outputs and
       buffers;
    9. an op with a varying operand gives varying results, and its other operands are
       varying or replicated;
    10. a rank has whole chunks of its units, parameters in the unit's type, and a
       unit's gather sends one of them, on the unit's mesh and axes; where nothing is
       recorded (13), gathers of forward and backward send parameters;
    11. no op mixes chunks, flat buffers or tables of two units;
    12. the new value of a unit's state comes from that unit;
    13. gradients and results are the expressions that `spmd-record-values` found, if
       it has run.

    Input: a partitioned `@step`. Output: the input, unchanged; an error names the
    op, its module and its line.

    Why: each condition is local, checked without the code that established it, and
    together they say that the ranks compute what one device would.

    ```mlir
    // spmd-opt --spmd-verify-partition
    #partial = #spmd.sharding<global = [3], [partial<sum>]>
    spmd.mesh @mesh ["data" = 2]
    func.func @step(%x: tensor<3xf32, #partial>) {
      %y = aten.exp %x : (tensor<3xf32, #partial>) -> tensor<3xf32, #partial>
      return
    }
    // fails with: is not linear in operand 0, which is partial<sum>
    ```
  }];
}

def RecordValues : Pass<"spmd-record-values", "::mlir::ModuleOp"> {
  let summary = "notes what gradients and results are, for verifiers";
  let description = [{
    Writes the attribute `spmd.recorded_values` of `@step`: a hash of the expression
    of every result, and of every gradient that is packed to be reduced, by parameter.
    A start with its wait counts as the collective, a value in a message of several as
    if it were alone.

    Input: a partitioned `@step`. Output: the input with the attribute, which replaces
    an older one.

    Why: sharding states say that a value is reduced, not that it is the right one.
    With two parameters of one shape, swapped gradients have the right types
    everywhere. Passes that only move communication must keep these expressions, and
    verifiers see that they do.

    ```mlir
    // spmd-opt --spmd-record-values
    #scalar = #spmd.sharding<global = [], [replicated]>
    spmd.mesh @mesh ["data" = 2]
    func.func @step(%a: tensor<f32, #scalar>, %b: tensor<f32, #scalar>)
        -> (tensor<f32, #scalar> {spmd.result = #spmd.loss<"">}) {
      %loss = aten.sub.Tensor %a, %b : (tensor<f32, #scalar>, tensor<f32, #scalar>) -> tensor<f32, #scalar>
      return %loss : tensor<f32, #scalar>
    }
    // becomes
    #scalar = #spmd.sharding<global = [], [replicated]>
    spmd.mesh @mesh ["data" = 2]
    func.func @step(%a: tensor<f32, #scalar>, %b: tensor<f32, #scalar>)
        -> (tensor<f32, #scalar> {spmd.result = #spmd.loss<"">})
        attributes {spmd.recorded_values = {gradients = {}, results = array<i64: 1997737034298600146>}} {
      %loss = aten.sub.Tensor %a, %b : (tensor<f32, #scalar>, tensor<f32, #scalar>) -> tensor<f32, #scalar>
      return %loss : tensor<f32, #scalar>
    }
    ```
  }];
}

def ListReplicatedValues : Pass<"spmd-list-replicated-values", "::mlir::ModuleOp"> {
  let summary = "notes what every rank computes whole";
  let description = [{
    Writes the module attribute `spmd.replicated`: op, bytes and source of every
    value of at least 4 KiB that an op computes in full on each rank. Parameters that
    are gathered are none of them, nor are views.

    Input: a partitioned `@step` on more than one rank. Output: the input with the
    attribute, if there are such values.

    Why: what does not shrink with the number of ranks (tables of positions, masks)
    should be seen by whoever plans a run.

    ```mlir
    // spmd-opt --spmd-list-replicated-values
    #whole = #spmd.sharding<global = [64, 32], [replicated]>
    #rows = #spmd.sharding<global = [64, 32], [shard<0, 1, 32>]>
    spmd.mesh @mesh ["data" = 2]
    func.func @step(%table: tensor<64x32xf32, #whole>, %x: tensor<32x32xf32, #rows>) {
      %cos = aten.cos %table : (tensor<64x32xf32, #whole>) -> tensor<64x32xf32, #whole> loc("model.py":12:0)
      %y = aten.cos %x : (tensor<32x32xf32, #rows>) -> tensor<32x32xf32, #rows>
      return
    }
    // becomes
    #whole = #spmd.sharding<global = [64, 32], [replicated]>
    #rows = #spmd.sharding<global = [64, 32], [shard<0, 1, 32>]>
    module attributes {spmd.replicated = [{bytes = 8192 : i64, op = "cos", source = "model.py:12"} ]} {
      spmd.mesh @mesh ["data" = 2]
      func.func @step(%table: tensor<64x32xf32, #whole>, %x: tensor<32x32xf32, #rows>) {
        %cos = aten.cos %table : (tensor<64x32xf32, #whole>) -> tensor<64x32xf32, #whole>
        %y = aten.cos %x : (tensor<32x32xf32, #rows>) -> tensor<32x32xf32, #rows>
        return
      }
    }
    ```
  }];
}

def StripSharding : Pass<"spmd-strip-sharding", "::mlir::ModuleOp"> {
  let summary = "removes #spmd.sharding from all tensor types";
  let description = [{
    Removes the encoding of every type, and keeps that of batch arguments and of
    results as `spmd.layout`, by which the runtime cuts batches and joins outputs.

    Input: a partitioned program. Output: plain local computation and collectives;
    no op knows global shapes any more.

    Why: code generation is about what one rank computes. This is the only pass that
    may drop an encoding, so a sharding cannot get lost elsewhere.

    ```mlir
    // spmd-opt --spmd-strip-sharding
    #rows = #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>
    func.func @step(%x: tensor<4x16xf32, #rows> {spmd.arg = #spmd.batch<"x", dim = 0>})
        -> (tensor<4x16xf32, #rows> {spmd.result = #spmd.output<"">}) {
      %y = aten.relu %x : (tensor<4x16xf32, #rows>) -> tensor<4x16xf32, #rows>
      return %y : tensor<4x16xf32, #rows>
    }
    // becomes
    #rows = #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>
    func.func @step(%x: tensor<4x16xf32> {spmd.arg = #spmd.batch<"x", dim = 0>, spmd.layout = #rows})
        -> (tensor<4x16xf32> {spmd.layout = #rows, spmd.result = #spmd.output<"">}) {
      %y = aten.relu %x : (tensor<4x16xf32>) -> tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }
    ```
  }];
}

#endif // SPMD_TRANSFORMS_PARTITION_PASSES_TD
