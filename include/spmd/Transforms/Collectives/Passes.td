//===- Passes.td - fewer, larger, earlier collectives -------*- tablegen -*-===//

#ifndef SPMD_TRANSFORMS_COLLECTIVES_PASSES_TD
#define SPMD_TRANSFORMS_COLLECTIVES_PASSES_TD

include "mlir/Pass/PassBase.td"

def DedupCollectives : Pass<"spmd-dedup-collectives", "::mlir::ModuleOp"> {
  let summary = "one collective per unit and direction";
  let description = [{
    Partition gathers a unit at every use of a parameter. Two collectives that have
    the same operands and attributes, segment included, are one: the first. So
    forward and backward, being different segments, each gather a unit once, and
    nothing gathered lives between them. A unit without `reshard_after_forward` is
    gathered once for all segments. Unpacks of one buffer become one.

    Input: the program of a rank after spmd-partition. Output: the same values with
    one collective for each that is needed.

    Why a pass of its own: partition can then convert every use by itself, and what
    is shared, and for how long, is decided in one place.

    ```mlir
    // spmd-opt --spmd-dedup-collectives
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>,
      #spmd.segment<"b", shape = [4], group = 0, offset = 128, numel = 4, trainable = true>]>
    func.func @step(%shard: tensor<128xf32>) -> (tensor<4x16xf32>, tensor<4xf32>) {
      %0 = spmd.all_gather %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 0}
          : tensor<128xf32> -> tensor<256xf32>
      %w = spmd.unpack %0 unit @unit0 ["w"] {spmd.segment = 0} : tensor<256xf32> -> tensor<4x16xf32>
      %1 = spmd.all_gather %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 0}
          : tensor<128xf32> -> tensor<256xf32>
      %b = spmd.unpack %1 unit @unit0 ["b"] {spmd.segment = 0} : tensor<256xf32> -> tensor<4xf32>
      return %w, %b : tensor<4x16xf32>, tensor<4xf32>
    }
    // becomes
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>,
      #spmd.segment<"b", shape = [4], group = 0, offset = 128, numel = 4, trainable = true>]>
    func.func @step(%shard: tensor<128xf32>) -> (tensor<4x16xf32>, tensor<4xf32>) {
      %0 = spmd.all_gather %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 0}
          : tensor<128xf32> -> tensor<256xf32>
      %w, %b = spmd.unpack %0 unit @unit0 ["w", "b"] {spmd.segment = 0}
          : tensor<256xf32> -> tensor<4x16xf32>, tensor<4xf32>
      return %w, %b : tensor<4x16xf32>, tensor<4xf32>
    }
    ```
  }];
}

def ReshardToGroups : Pass<"spmd-reshard-to-groups", "::mlir::ModuleOp"> {
  let summary = "backward gathers within groups of ranks what forward has gathered across all";
  let description = [{
    Of a unit with a `reshard_group`, each rank keeps a piece of what forward has
    gathered: the buffer cut over the ranks of its group, which is the last of the
    axes over which the batch is cut. Backward gathers the pieces along that axis. PyTorch's FSDP2 calls it
    `reshard_after_forward=INT`.

    Input: the program of a rank after spmd-cast-before-gather. Output: the same values.

    Why after the cast: the piece is of the type that was gathered.

    ```mlir
    // spmd-opt --spmd-reshard-to-groups
    module attributes {spmd.phases = ["forward", "backward"]} {
    spmd.mesh @mesh ["outer" = 2, "inner" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["outer", "inner"] fully_shard reshard_after_forward layout #spmd.flat<f32, padded = 512, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]> {reshard_group = 2 : i64}
    func.func @step(%shard: tensor<128xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
      %0 = spmd.all_gather %shard on @mesh ["outer", "inner"] unit @unit0 dim 0 pre 1 total 512 {spmd.segment = 0}
          : tensor<128xf32> -> tensor<512xf32>
      %w = spmd.unpack %0 unit @unit0 ["w"] {spmd.segment = 0} : tensor<512xf32> -> tensor<4x16xf32>
      %1 = spmd.all_gather %shard on @mesh ["outer", "inner"] unit @unit0 dim 0 pre 1 total 512 {spmd.segment = 1}
          : tensor<128xf32> -> tensor<512xf32>
      %again = spmd.unpack %1 unit @unit0 ["w"] {spmd.segment = 1} : tensor<512xf32> -> tensor<4x16xf32>
      return %w, %again : tensor<4x16xf32>, tensor<4x16xf32>
    }
    }
    // becomes
    module attributes {spmd.phases = ["forward", "backward"]} {
    spmd.mesh @mesh ["outer" = 2, "inner" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["outer", "inner"] fully_shard reshard_after_forward layout #spmd.flat<f32, padded = 512, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]> {reshard_group = 2 : i64}
    func.func @step(%shard: tensor<128xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
      %0 = spmd.all_gather %shard on @mesh ["outer", "inner"] unit @unit0 dim 0 pre 1 total 512 {spmd.segment = 0}
          : tensor<128xf32> -> tensor<512xf32>
      %piece = spmd.slice %0 on @mesh ["inner"] dim 0 pre 1 chunk 256 {spmd.segment = 0}
          : tensor<512xf32> -> tensor<256xf32>
      %w = spmd.unpack %0 unit @unit0 ["w"] {spmd.segment = 0} : tensor<512xf32> -> tensor<4x16xf32>
      %1 = spmd.all_gather %piece on @mesh ["inner"] unit @unit0 dim 0 pre 1 total 512 {spmd.segment = 1}
          : tensor<256xf32> -> tensor<512xf32>
      %again = spmd.unpack %1 unit @unit0 ["w"] {spmd.segment = 1} : tensor<512xf32> -> tensor<4x16xf32>
      return %w, %again : tensor<4x16xf32>, tensor<4x16xf32>
    }
    }
    ```
  }];
}

def CastBeforeGather : Pass<"spmd-cast-before-gather", "::mlir::ModuleOp"> {
  let summary = "gathers a unit in the type that its parameters are cast to";
  let description = [{
    Where every use of a unit's gathered parameters casts them to one narrower float
    type, the rank's chunk is cast and the result gathered. A cast works element by
    element, so no bit changes; the bytes on the wire and of the gathered buffer are
    those of the narrow type. A gather of which one parameter is read as it is stays.

    Input: the program of a rank after spmd-dedup-collectives. Output: the same values.

    Why after dedup: only then do all uses of a gathered buffer stand under one op.

    ```mlir
    // spmd-opt --spmd-cast-before-gather
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
    func.func @step(%shard: tensor<128xf32>) -> tensor<4x16xbf16> {
      %0 = spmd.all_gather %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256
          : tensor<128xf32> -> tensor<256xf32>
      %w = spmd.unpack %0 unit @unit0 ["w"] : tensor<256xf32> -> tensor<4x16xf32>
      %1 = aten._to_copy %w {dtype = bf16} : (tensor<4x16xf32>) -> tensor<4x16xbf16>
      return %1 : tensor<4x16xbf16>
    }
    // becomes
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
    func.func @step(%shard: tensor<128xf32>) -> tensor<4x16xbf16> {
      %0 = aten._to_copy %shard {dtype = bf16} : (tensor<128xf32>) -> tensor<128xbf16>
      %1 = spmd.all_gather %0 on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256
          : tensor<128xbf16> -> tensor<256xbf16>
      %w = spmd.unpack %1 unit @unit0 ["w"] : tensor<256xbf16> -> tensor<4x16xbf16>
      return %w : tensor<4x16xbf16>
    }
    ```
  }];
  let dependentDialects = ["::spmd::aten::AtenDialect"];
}

def BucketCollectives : Pass<"spmd-bucket-collectives", "::mlir::ModuleOp"> {
  let summary = "merges small all_reduces into messages";
  let description = [{
    All_reduces that are not of a unit's buffer are latency, not bytes. The pass
    takes the one that is needed first, and with it every other one whose operand is
    there by then, and makes them one op, one message, right after the last operand.
    Ops of at most 64 elements that only pass such values on (a loss divided by a
    token count) do not count as a need: they are moved below the message.

    Input: synchronous collectives. Output: the same values, fewer all_reduce ops.

    Why: a message of four bytes takes as long as one of four hundred.

    ```mlir
    // spmd-opt --spmd-bucket-collectives
    spmd.mesh @mesh ["data" = 2]
    func.func @step(%sum: tensor<f32>, %tokens: tensor<f32>) -> tensor<f32> {
      %0 = spmd.all_reduce [sum] %sum on @mesh ["data"] : (tensor<f32>) -> tensor<f32>
      %1 = spmd.all_reduce [sum] %tokens on @mesh ["data"] : (tensor<f32>) -> tensor<f32>
      %loss = aten.div.Tensor %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    // becomes
    spmd.mesh @mesh ["data" = 2]
    func.func @step(%sum: tensor<f32>, %tokens: tensor<f32>) -> tensor<f32> {
      %0:2 = spmd.all_reduce [sum, sum] %sum, %tokens on @mesh ["data"]
          : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %loss = aten.div.Tensor %0#0, %0#1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    ```
  }];
}

def AdvanceLastReduction : Pass<"spmd-advance-last-reduction", "::mlir::ModuleOp"> {
  let summary = "the last unit's gradients are reduced behind weight gradients of the unit before";
  let description = [{
    Backward ends with the gradients of the units that forward uses first, and nothing
    hides the reduction of the last ones. What this reduction does not need, the weight
    gradients of the unit before and their reduction, moves behind it. It then runs
    beside these products, and the step ends with the other unit's reduction. Of a
    language model the last one is that of the embedding, the largest of all.

    Only ops behind the third reduction from the end move, so that gradients of the two
    last units live longer and no others. Steps with fewer reductions in their last
    backward pass stay as they are.

    Input: synchronous collectives. Output: the same ops in another order; every value
    is what it was.

    ```mlir
    // spmd-opt --spmd-advance-last-reduction
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @a modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"a", shape = [256], group = 0, offset = 0, numel = 256, trainable = true>]>
    func.func @step(%g: tensor<256xf32>, %x: tensor<256xf32>)
        -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) {
      %c = spmd.reduce_scatter sum %g on @mesh ["data"] unit @a dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
      %w = aten.mul.Tensor %g, %x : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
      %b = spmd.reduce_scatter sum %w on @mesh ["data"] unit @a dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
      %e = aten.neg %g : (tensor<256xf32>) -> tensor<256xf32>
      %a = spmd.reduce_scatter sum %e on @mesh ["data"] unit @a dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
      return %a, %b, %c : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    }
    // becomes
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @a modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"a", shape = [256], group = 0, offset = 0, numel = 256, trainable = true>]>
    func.func @step(%g: tensor<256xf32>, %x: tensor<256xf32>)
        -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) {
      %c = spmd.reduce_scatter sum %g on @mesh ["data"] unit @a dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
      %e = aten.neg %g : (tensor<256xf32>) -> tensor<256xf32>
      %a = spmd.reduce_scatter sum %e on @mesh ["data"] unit @a dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
      %w = aten.mul.Tensor %g, %x : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
      %b = spmd.reduce_scatter sum %w on @mesh ["data"] unit @a dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
      return %a, %b, %c : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    }
    ```
  }];
  let options = [
    Option<"enable", "enable", "::spmd::BooleanOption", "true", "else the order stays">,
  ];
}

def StartCollectives : Pass<"spmd-start-collectives", "::mlir::ModuleOp"> {
  let summary = "splits collectives into a start and a wait";
  let description = [{
    A collective runs on a stream of its own (`gather`, `reduce`, or `scalar` for
    small all_reduces) while computation goes on. It starts where its operand is
    ready, and is waited for right before its first use. Gathers of units start one
    unit ahead: when a unit has arrived, the gather of the next one starts
    (`prefetch=1`), or each starts where it is waited for (`prefetch=0`, the least
    memory), but never while the unit's buffer of an earlier gather is in use.
    `spmd.release` follows the last use of a gathered buffer. A unit's gradients are
    waited for when the reduction of the next unit's starts, if nothing needs them
    before: from then on their unsharded form takes no memory.

    Input: synchronous collectives. Output: starts, waits and releases only; from
    here on block order is the schedule.

    Why: a step waits for the network only where computation has nothing left to do.

    ```mlir
    // spmd-opt --spmd-start-collectives
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
    func.func @step(%shard: tensor<128xf32>, %x: tensor<2x4xf32>) -> tensor<2x16xf32> {
      %0 = aten.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
      %flat = spmd.all_gather %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256
          : tensor<128xf32> -> tensor<256xf32>
      %w = spmd.unpack %flat unit @unit0 ["w"] : tensor<256xf32> -> tensor<4x16xf32>
      %y = aten.mm %0, %w : (tensor<2x4xf32>, tensor<4x16xf32>) -> tensor<2x16xf32>
      return %y : tensor<2x16xf32>
    }
    // becomes
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
    func.func @step(%shard: tensor<128xf32>, %x: tensor<2x4xf32>) -> tensor<2x16xf32> {
      %h = spmd.all_gather_start %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 stream gather
          : tensor<128xf32> -> !spmd.handle<tensor<256xf32>>
      %0 = aten.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
      %flat = spmd.wait %h : !spmd.handle<tensor<256xf32>> -> tensor<256xf32>
      %w = spmd.unpack %flat unit @unit0 ["w"] : tensor<256xf32> -> tensor<4x16xf32>
      %y = aten.mm %0, %w : (tensor<2x4xf32>, tensor<4x16xf32>) -> tensor<2x16xf32>
      spmd.release %flat : tensor<256xf32>
      return %y : tensor<2x16xf32>
    }
    ```
  }];
  let options = [Option<"prefetch", "prefetch", "int64_t", "1",
                        "units gathered ahead of their use: 0 or 1">];
  let dependentDialects = ["::spmd::SpmdDialect"];
}

def VerifySchedule : Pass<"spmd-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "checks what must hold of scheduled collectives";
  let description = [{
    Checks, after spmd-start-collectives:

    1. no synchronous collective is left;
    2. every start is waited for exactly once;
    3. only gathered values are released, at most once, and every gathered buffer
       of a unit is released;
    4. no use of a value, or of a view of it, comes after its release;
    5. every communicator has one stream of collectives: all of one op kind that
       may be on it (gathers on `gather`, all_reduces of no unit on `scalar`, other
       reductions on `reduce`);
    6. what `spmd-verify-partition` checks, as long as types have states.

    Input: scheduled collectives. Output: the input, unchanged; an error names the
    op, its module and its line.

    Why: every rank runs this one list of commands, so all ranks issue the same
    sequence on each communicator, and none can wait for what another never sends.

    ```mlir
    // spmd-opt --spmd-verify-schedule
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
    func.func @step(%shard: tensor<128xf32>, %x: tensor<2x4xf32>) -> tensor<2x16xf32> {
      %h = spmd.all_gather_start %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 stream gather
          : tensor<128xf32> -> !spmd.handle<tensor<256xf32>>
      %flat = spmd.wait %h : !spmd.handle<tensor<256xf32>> -> tensor<256xf32>
      %w = spmd.unpack %flat unit @unit0 ["w"] : tensor<256xf32> -> tensor<4x16xf32>
      spmd.release %flat : tensor<256xf32>
      %y = aten.mm %x, %w : (tensor<2x4xf32>, tensor<4x16xf32>) -> tensor<2x16xf32>  // %w is a view of %flat
      return %y : tensor<2x16xf32>
    }
    // fails with: 'aten.mm' reads a gathered buffer after its release
    ```
  }];
}

def SumNorms : Pass<"spmd-sum-norms", "::mlir::ModuleOp"> {
  let summary = "norms over ranks as sums of squares";
  let description = [{
    Definition: an all_reduce of kind norm2, of which partial norms are the operands, becomes one of kind sum, of their
    squares; the root is taken after the wait. Norms of 16 bits are squared and summed in f32. Without `enable` nothing
    is done.

    Input: scheduled collectives on plain tensors (after spmd-strip-sharding, since a square of a partial value has no
    state). Output: the same without norm2.

    Why: NCCL has sums, products, largest and smallest values and averages, and no norm. Square and root fuse with what
    is before and after.

    ```mlir
    // spmd-opt --spmd-sum-norms=enable=true
    spmd.mesh @mesh ["data" = 2]
    func.func @step(%norm: tensor<f32>) -> tensor<f32> {
      %h = spmd.all_reduce_start [norm2] %norm on @mesh ["data"] stream scalar
          : (tensor<f32>) -> !spmd.handle<tensor<f32>>
      %all = spmd.wait %h : !spmd.handle<tensor<f32>> -> tensor<f32>
      return %all : tensor<f32>
    }
    // becomes
    spmd.mesh @mesh ["data" = 2]
    func.func @step(%norm: tensor<f32>) -> tensor<f32> {
      %square = aten.mul.Tensor %norm, %norm : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %h = spmd.all_reduce_start [sum] %square on @mesh ["data"] stream scalar
          : (tensor<f32>) -> !spmd.handle<tensor<f32>>
      %sum = spmd.wait %h : !spmd.handle<tensor<f32>> -> tensor<f32>
      %all = aten.sqrt %sum : (tensor<f32>) -> tensor<f32>
      return %all : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::spmd::aten::AtenDialect"];
  let options = [Option<"enable", "enable", "::spmd::BooleanOption", /*default=*/"false", "Whether the target has no such reduction">];
}

#endif // SPMD_TRANSFORMS_COLLECTIVES_PASSES_TD
