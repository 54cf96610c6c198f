// Annotations, plan files and ignored parameters; the policies themselves are tested in test/unit/ShardUnits.
// RUN: split-file %s %t
// RUN: spmd-opt %t/model.mlir --spmd-assign-shard-units="ranks=2" --spmd-verify-step=phase=units | FileCheck %s --check-prefix=NOTE
// RUN: not spmd-opt %t/model.mlir --spmd-assign-shard-units="policy=always" 2>&1 | FileCheck %s --check-prefix=E-BOTH
// RUN: not spmd-opt %t/model.mlir --spmd-assign-shard-units="ranks=4" 2>&1 | FileCheck %s --check-prefix=E-RANKS
// RUN: sed -e 's/spmd.annotations = .*/spmd.tied = {a.w = ["b.w"]}/' -e 's/%%1: .*"b.w", trainable>},//' %t/model.mlir > %t/plain.mlir
// RUN: spmd-opt %t/plain.mlir --spmd-assign-shard-units="policy-file=%t/plan.json ranks=4" | FileCheck %s --check-prefix=PLAN
// RUN: spmd-opt %t/plain.mlir --spmd-assign-shard-units="policy='or(class:Act; name:[ab]{1})' ignored-parameters=c.w ignored-modules=b ranks=2" 2>&1 | FileCheck %s --check-prefix=IGNORED
// RUN: not spmd-opt %t/plain.mlir --spmd-assign-shard-units="policy=always strict-tied=true" 2>&1 | FileCheck %s --check-prefix=E-TIED
// RUN: not spmd-opt %t/plain.mlir --spmd-assign-shard-units="policy-file=%t/strict.json" 2>&1 | FileCheck %s --check-prefix=E-TIED
// RUN: not spmd-opt %t/plain.mlir --spmd-assign-shard-units="policy=always policy-file=%t/plan.json" 2>&1 | FileCheck %s --check-prefix=E-TWO
// RUN: not spmd-opt %t/plain.mlir --spmd-assign-shard-units="policy-file=%t/bad.json" 2>&1 | FileCheck %s --check-prefix=E-PLAN
// RUN: not spmd-opt %t/plain.mlir --spmd-assign-shard-units="policy-file=%t/none.json" 2>&1 | FileCheck %s --check-prefix=E-FILE

// The root is kept, the others are freed; an ignored parameter is whole on every rank. `act` has no parameters, and no op.
// NOTE: spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [#spmd.segment<"c.w"
// NOTE: spmd.shard_unit @unit1 modules ["a"] mesh @mesh axes ["data"] replicate reshard_after_forward layout {{.*}}"a.w"{{.*}} {precision = {param = bf16, reduce = f32}, prefetch = 0 : i64}
// NOTE: spmd.shard_unit @unit2 modules ["b"] mesh @mesh axes ["data"] replicate reshard_after_forward layout {{.*}}"b.w"{{.*}} {ignored}
// NOTE-NOT: shard_unit

// PLAN: spmd.shard_unit @unit0 modules [""] {{.*}}"a.w"
// PLAN: spmd.shard_unit @unit1 modules ["b", "c"] {{.*}} fully_shard reshard_after_forward {{.*}}"c.w"{{.*}} {reshard_group = 2 : i64}

// a.w is b.w, which module b ignores.
// IGNORED: spmd.shard_unit @unit0 modules ["a", "b", "c"] mesh @mesh axes ["data"] replicate {{.*}}"a.w"{{.*}}"c.w"{{.*}} {ignored}
// IGNORED-NOT: shard_unit

// E-BOTH: error: module 'a' is annotated as a unit already; a policy chooses for models without annotations
// E-RANKS: error: unit 'a': is annotated for a mesh of 2 ranks, there are 4
// E-TIED: error: parameter 'a.w' is shared by the modules 'a', 'b', which are in different units; {{.*}}, and strict-tied forbids that
// E-TWO: error: policy and policy-file exclude each other
// E-PLAN: error: {{.*}}bad.json: /rules/0/clas: unknown member of a rule; allowed: module, class, name, policy, unit, options
// E-FILE: error: cannot read '{{.*}}none.json'

//--- plan.json
{"format": "spmd-shard-units", "version": 1, "rules": [
  {"module": ["b", "c"], "options": {"reshard_after_forward": 2}}]}
//--- strict.json
{"format": "spmd-shard-units", "version": 1, "strict_tied": true, "rules": [{"module": ["a"]}, {"module": ["b"]}]}
//--- bad.json
{"format": "spmd-shard-units", "version": 1, "rules": [{"clas": "Linear"}]}
//--- model.mlir
module attributes {
    spmd.annotations = [#spmd.annotation<modules = ["a"], mode = "replicate", precision = {param = bf16, reduce = f32}, prefetch = 0 : i64, mesh = [2]>, #spmd.annotation<modules = ["b"], ignored = ["b.w"]>, #spmd.annotation<modules = ["act"]>]
} {
  spmd.module_tree @tree {
    spmd.module "" class "Net" bases [] params [] buffers [] children ["a", "b", "c", "act"]
    spmd.module "a" class "Linear" bases [] params ["a.w"] buffers [] children []
    spmd.module "b" class "Linear" bases [] params ["b.w"] buffers [] children []
    spmd.module "c" class "Linear" bases [] params ["c.w"] buffers [] children []
    spmd.module "act" class "Act" bases [] params [] buffers [] children []
  }
  func.func @step(%0: tensor<8xf32> {spmd.arg = #spmd.param<"a.w", trainable>}, %1: tensor<8xf32> {spmd.arg = #spmd.param<"b.w", trainable>},
                  %2: tensor<8xf32> {spmd.arg = #spmd.param<"c.w", trainable>}) {
    return
  }
}
