//===- Passes.td - shard units ------------------------------*- tablegen -*-===//

#ifndef SPMD_TRANSFORMS_UNITS_PASSES_TD
#define SPMD_TRANSFORMS_UNITS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignShardUnits : Pass<"spmd-assign-shard-units", "::mlir::ModuleOp"> {
  let summary = "puts every parameter into a shard unit";
  let description = [{
    A *shard unit* is a set of parameters that share one flat buffer: they are
    gathered by one collective before use and their gradients are reduced by one.
    The pass decides which parameters go together, by a wrap policy over the module
    tree, and lays the buffers out.

    Policies have PyTorch's semantics (docs/shard-units.md has the table):

    * `auto`: what `fully_shard` and `wrap` have said in Python
      (`spmd.annotations`), or one unit when they have said nothing;
    * `none`: one unit for the whole model;
    * `always`: one unit per module;
    * `class:A,B`: one unit per module whose class, or a base of it, has one of
      these names (compared from the end: `Block` matches `train.Block`);
    * `size:N[,force-leaf=A+B][,exclude=A+B]`: going down while a module has at least
      N elements that are in no unit, a module becomes a unit when N remain after
      the modules below it; nothing below a force-leaf class (default
      MultiheadAttention), and no excluded one (default ModuleList, ModuleDict);
    * `name:REGEX`: one unit per module whose whole path matches;
    * `or(P;P)`: what one of the policies chooses.

    `policy-file` has rules with options per unit instead. The root always is a
    unit; a unit without parameters costs nothing and leaves no op.

    A parameter belongs to the innermost unit around its owner; the root takes what
    remains. A tied parameter belongs to the unit around the nearest common ancestor
    of its owners, with a remark, or an error under `strict-tied`. Parameters of
    different element types, and parameters that the step does not update, get units
    of their own with the same modules: they are never reduced together. Ignored
    parameters get a last unit that is whole on every rank.

    Input: `@step` with roles, a `spmd.module_tree`, and `spmd.param_groups` and
    `spmd.tied` on the module if there are groups and tied parameters, and
    `spmd.annotations` if the model is annotated.

    Output: the same, with a `spmd.mesh @mesh` of `ranks` ranks (or the `mesh` that
    the option, or else the annotations, name) and one `spmd.shard_unit` per unit, in the order of the module tree, segments in
    registration order within each optimizer group.

    Why a pass of its own: the units are symbols that one can read and edit before
    anything depends on them.

    ```mlir
    // spmd-opt --spmd-assign-shard-units="policy=class:Block ranks=4"
    spmd.module_tree @tree {
      spmd.module "" class "train.GPT" bases [] params ["wte"] buffers [] children ["h"]
      spmd.module "h" class "train.Block" bases [] params ["h.weight", "h.bias"] buffers [] children []
    }
    func.func @step(%0: tensor<65x32xf32> {spmd.arg = #spmd.param<"wte", trainable>},
                    %1: tensor<32x32xf32> {spmd.arg = #spmd.param<"h.weight", trainable>},
                    %2: tensor<32xf32> {spmd.arg = #spmd.param<"h.bias", trainable>}) {
      return
    }
    // becomes
    spmd.module_tree @tree {
      spmd.module "" class "train.GPT" bases [] params ["wte"] buffers [] children ["h"]
      spmd.module "h" class "train.Block" bases [] params ["h.weight", "h.bias"] buffers [] children []
    }
    spmd.mesh @mesh ["data" = 4]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard reshard_after_forward
      layout #spmd.flat<f32, padded = 2560, [
        #spmd.segment<"wte", shape = [65, 32], group = -1, offset = 0, numel = 2080, trainable = true>]>
    spmd.shard_unit @unit1 modules ["h"] mesh @mesh axes ["data"] fully_shard reshard_after_forward
      layout #spmd.flat<f32, padded = 1536, [
        #spmd.segment<"h.weight", shape = [32, 32], group = -1, offset = 0, numel = 1024, trainable = true>,
        #spmd.segment<"h.bias", shape = [32], group = -1, offset = 1024, numel = 32, trainable = true>]>
    func.func @step(%0: tensor<65x32xf32> {spmd.arg = #spmd.param<"wte", trainable>},
                    %1: tensor<32x32xf32> {spmd.arg = #spmd.param<"h.weight", trainable>},
                    %2: tensor<32xf32> {spmd.arg = #spmd.param<"h.bias", trainable>}) {
      return
    }
    ```
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"annotations\"",
           "annotations, auto, none, always, class:A,B, size:N[,force-leaf=A+B][,exclude=A+B], "
           "name:REGEX or or(P;P)">,
    Option<"policyFile", "policy-file", "std::string", "\"\"",
           "JSON file with rules and options per unit, instead of policy">,
    ListOption<"ignoredModules", "ignored-modules", "std::string",
               "paths of modules whose parameters are in no unit, but whole on every rank">,
    ListOption<"ignoredParameters", "ignored-parameters", "std::string",
               "names of such parameters">,
    Option<"strictTied", "strict-tied", "::spmd::BooleanOption", "false",
           "a tied parameter with owners in different units is an error">,
    Option<"precision", "precision", "std::string", "\"\"",
           "param=TYPE,reduce=TYPE,buffer=TYPE,output=TYPE, of units that say nothing else; what "
           "is absent is as the step was captured">,
    Option<"ranks", "ranks", "int64_t", "::spmd::units::kRanksNotSaid",
           "number of ranks, at least 1 (default: those of the mesh, or 1)">,
    Option<"mesh", "mesh", "std::string", "\"\"",
           "how they are arranged: replicate:N,shard:M or shard:M">,
    Option<"mode", "mode", "std::string", "\"fully_shard\"",
           "fully_shard: each rank owns a chunk; shard_grad_op: the same, and what is gathered is kept until backward; "
           "shard_optimizer: parameters are whole, gradients and optimizer state in chunks; hybrid: fully_shard on a "
           "mesh of two axes; replicate: each has all; default: fully_shard, with spmd.reshard_open on units of which "
           "the compiler may keep what is gathered">,
    Option<"reshardAfterForward", "reshard-after-forward", "std::string", "\"\"",
           "true or false: free gathered parameters between forward and backward; else as the mode says">,
  ];
  let dependentDialects = ["::spmd::SpmdDialect"];
}

def VerifyStep : Pass<"spmd-verify-step", "::mlir::ModuleOp"> {
  let summary = "checks what a phase promises of the step";
  let description = [{
    The verifier of the phases that have no richer one of their own. It checks that

    1. every argument and result of `@step` has a role, and an update has the type
       of what it updates (every phase);
    2. every op has a `spmd.segment` (import, units, decompose);
    3. every parameter lies in exactly one shard unit (units);
    4. no list op of an optimizer is left (decompose);
    5. no aten op and no sharding state is left (kernels).

    Input: `@step` after the phase. Output: the same, or an error at the op.

    Why: a broken promise is found where it was broken, not three phases later.

    ```mlir
    // spmd-opt --spmd-verify-step="phase=import"
    func.func @step(%x: tensor<8xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
        -> (tensor<8xf32> {spmd.result = #spmd.output<"">}) {
      %0 = aten.relu %x : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    // fails with: has no spmd.segment
    ```
  }];
  let options = [
    Option<"phase", "phase", "std::string", "\"import\"",
           "import, units, decompose or kernels">,
  ];
}

#endif // SPMD_TRANSFORMS_UNITS_PASSES_TD
