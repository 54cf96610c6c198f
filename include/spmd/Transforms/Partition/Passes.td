//===- Passes.td - from the global step to one rank's program *- tablegen -*-===//

#ifndef SPMD_TRANSFORMS_PARTITION_PASSES_TD
#define SPMD_TRANSFORMS_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def DynamicBatch : Pass<"spmd-dynamic-batch", "::mlir::ModuleOp"> {
  let summary = "lets the program of the largest batch serve smaller ones";
  let description = [{
    A step that was captured for several batch sizes has a batch input with the number of rows, named by
    `spmd.dynamic_batch`. The module `@other_batch` is the same step captured with another number of rows. The
    pass compares the two to find what depends on the rows, and makes the step exact for any number of rows up
    to its own. Rows after the last one are padding with any content:

    - An op that adds rows, or takes the largest, reads the neutral element in padding rows, by select
      (`masked_fill`).
    - A mean over rows becomes a sum divided by the actual number of rows. So does every number that the two
      captures have in proportion to it, or inversely.
    - These are errors that name the op: an op that needs all rows at once, a shape or a number that depends on
      the batch in another way, a result that keeps rows in more than one place.

    Input: a captured `@step` on global shapes. Without `spmd.dynamic_batch` nothing changes. Output: `@step`
    for every number of rows, without the attribute and without `@other_batch`. The runtime checks the number.
    Padding rows of its outputs hold anything.

    Why on the captured step: the rules of the ops describe rows, as they do for the partition, and later passes
    see an ordinary step.

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
    A mean over sharded rows is not the mean of the ranks' means if ranks have different numbers of rows. A sum
    and a division partition exactly: the sum is partial, and the count is a constant of the global shape. For
    `nll_loss` the count is the total weight, which is itself a sum.

    Input: `@step` on global shapes. Output: the same without mean.dim, without var_mean (the mean, then the
    mean of squared differences), and without losses that reduce by mean. `nll_loss_backward` stays: it divides
    by its operand `total_weight`, which is the global one.

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
    Parameters that are placed on the tensor axis of the mesh are cut in one dim. The rest of the step follows
    by the sharding rules of the ops:

    - Gradients and optimizer state are cut like their parameter.
    - Activations are cut after a product whose weight is cut in its outputs, and are partial sums after a
      product whose weight is cut in its inputs.
    - A partial sum is reduced where it must first be whole. A transformer block whose attention and MLP are
      such pairs has two all-reduces in forward, and two in backward.
    - Over a cut dim, softmax and means are a maximum, sums and arithmetic. An embedding with cut rows, and a
      loss over cut classes, look up a rank's own rows and have 0 for the others.

    Input: `@step` on the whole batch, without a mesh. Output: `@step` on the whole batch, on a rank's parts of
    parameters, with `spmd.all_reduce` and `spmd.slice` along the tensor axis of a new `spmd.mesh`, and
    `spmd.tensor_cut` on arguments that are parts. `spmd-assign-shard-units` adds the other axes and cuts the
    rank's parts along them. Without a tensor axis in `mesh` nothing changes.

    Nothing that is cut is gathered: an op that needs it whole is an error at the op. So is a gradient that is
    cut although its parameter is not.

    Why before the units: a unit's flat buffer consists of a rank's parts, so the rest of the compiler only sees
    smaller parameters.

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
    Every value gets a *state* on the mesh: replicated, sharded in one dim, partial (to be combined over the
    ranks), or owned (a chunk of a unit's flat buffer). States follow only from roles: batch inputs are sharded,
    parameters and optimizer state are owned, everything else starts replicated. The sharding rule of each op
    lists the states in which it can run. If operands are in other states, a collective converts them. The
    result is correct for any roles: a wrong batch dim only costs communication.

    Input: `@step` without means (`spmd-split-means`), with shard units (`spmd-assign-shard-units`) and
    list-form optimizer ops.

    Output: `@step` with one flat argument per unit and state, local shapes, a `#spmd.sharding` on every tensor,
    and explicit collectives: an all_gather at every use of a parameter, one reduce_scatter per unit, and
    all_reduces at the first use of a partial value that must be whole. `spmd-dedup-collectives` comes next. The
    pass warns if an activation is gathered, and if matrix products run replicated.

    With `view=local` the captured step is that of one rank on its rows, as in FSDP. Values computed from rows
    are *varying*. Gradients are reduced as above and divided by the number of ranks, or by
    `gradient-divide-factor`. Nothing else communicates.

    A gradient that a step leaves to a later step is its parameters' chunk, like any state. Two options change
    this:

    - `accumulate=unsharded`: it is an argument and a result of its own, a partial sum of which each rank has a
      summand. A step that adds to it communicates nothing, and the step that updates reduces the sum (FSDP2's
      `set_requires_gradient_sync(False)`).
    - `accumulate=scattered`, on a mesh of two axes: it is a chunk, and ranks along the first axis have summands
      of it. A step that adds to it reduces only along the second axis. The step that updates all-reduces the
      sum along the first, once for a unit (FSDP2's `set_requires_all_reduce(False)`).

    Why on the whole step: forward, backward and optimizer are one function here, so one mechanism makes
    gathers, gradient reductions and sharded optimizer state.

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
  let summary = "records the expressions of gradients and results, for verifiers";
  let description = [{
    Writes the attribute `spmd.recorded_values` of `@step`: a hash of the expression of every result, and of
    every gradient that is packed to be reduced, by parameter. A start with its wait counts as the collective. A
    value in a message of several counts as if it were alone.

    Input: a partitioned `@step`. Output: the input with the attribute, which replaces an older one.

    Why: sharding states say that a value is reduced, not that it is the right value. For example, swapped
    gradients of two parameters of one shape have the right types everywhere. Passes that only move
    communication must keep these expressions, and verifiers check it.

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
  let summary = "lists values that every rank computes completely";
  let description = [{
    Writes the module attribute `spmd.replicated`: op, bytes and source of every value of at least 4 KiB that an
    op computes completely on each rank. Gathered parameters and views do not count.

    Input: a partitioned `@step` on more than one rank. Output: the input with the attribute, if there are such
    values.

    Why: values that more ranks do not make smaller (tables of positions, masks) matter when a run is planned.

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
    Removes the encoding of every type. It stays on batch arguments and results as `spmd.layout`, with which the
    runtime cuts batches and joins outputs.

    Input: a partitioned program. Output: plain local computation and collectives; no op depends on global
    shapes.

    Why: code generation handles the computation of one rank. Only this pass may drop an encoding, so a sharding
    cannot get lost elsewhere.

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
