// RUN: spmd-opt %s --spmd-assign-shard-units="policy=none ranks=2" | FileCheck %s --check-prefix=NONE
// RUN: spmd-opt %s --spmd-assign-shard-units="policy=class:Block ranks=4" | FileCheck %s --check-prefix=CLASS
// RUN: spmd-opt %s --spmd-assign-shard-units="policy=auto ranks=4" | FileCheck %s --check-prefix=AUTO
// RUN: spmd-opt %s --spmd-assign-shard-units="policy=class:Base ranks=4" | FileCheck %s --check-prefix=CLASS
// RUN: spmd-opt %s --spmd-assign-shard-units="policy=always mode=replicate reshard-after-forward=false" | FileCheck %s --check-prefix=ALWAYS
// RUN: spmd-opt %s --spmd-assign-shard-units="policy=size:1000" | FileCheck %s --check-prefix=SIZE
// RUN: not spmd-opt %s --spmd-assign-shard-units="policy=class:Blok" 2>&1 | FileCheck %s --check-prefix=E-CLASS
// RUN: not spmd-opt %s --spmd-assign-shard-units="policy=blocks" 2>&1 | FileCheck %s --check-prefix=E-POLICY
// RUN: not spmd-opt %s --spmd-assign-shard-units="policy=size:0" 2>&1 | FileCheck %s --check-prefix=E-SIZE
// RUN: not spmd-opt %s --spmd-assign-shard-units="ranks=0" 2>&1 | FileCheck %s --check-prefix=E-RANKS
// RUN: not spmd-opt %s --spmd-assign-shard-units="mode=zero3" 2>&1 | FileCheck %s --check-prefix=E-MODE

// E-CLASS: error: no module has class 'Blok' (closest: Block, {{.*}})
// E-POLICY: error: policy 'blocks': position 1: expected annotations, auto, none, always, class:A,B, size:N
// E-SIZE: error: policy 'size:0': position 6: expected at least 1 element
// E-RANKS: error: ranks is 0, expected at least 1
// E-MODE: error: mode 'zero3' is not one of: fully_shard, shard_grad_op, shard_optimizer, hybrid, replicate, default

// A tied embedding (wte and lm_head) belongs to the root; the frozen scale has a
// unit of its own; within a unit group 0 (decay) comes before group 1.

// NONE: spmd.mesh @mesh ["data" = 2]
// NONE: spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard reshard_after_forward
// NONE-SAME: padded = 4608
// NONE-SAME: "wte.weight", shape = [65, 32], group = 0, offset = 0, numel = 2080, trainable = true
// NONE-SAME: "h.0.fc.weight", shape = [32, 32], group = 0, offset = 2176
// NONE-SAME: "h.1.fc.weight", shape = [32, 32], group = 0, offset = 3200
// NONE-SAME: "h.0.fc.bias", shape = [32], group = 1, offset = 4224
// NONE-SAME: "h.1.fc.bias", shape = [32], group = 1, offset = 4352
// NONE: spmd.shard_unit @unit1 modules [""]
// NONE-SAME: padded = 256, [#spmd.segment<"scale", shape = [1], group = -1, offset = 0, numel = 1, trainable = false>]
// NONE-NOT: shard_unit

// AUTO: spmd.shard_unit @unit0 modules [""]
// AUTO-SAME: "scale"
// AUTO: spmd.shard_unit @unit1 modules ["wte", "lm_head"]
// AUTO-SAME: padded = 2560, [#spmd.segment<"wte.weight"
// AUTO: spmd.shard_unit @unit2 modules ["h.0"]
// AUTO: spmd.shard_unit @unit3 modules ["h.1"]
// AUTO-NOT: shard_unit

// CLASS: spmd.mesh @mesh ["data" = 4]
// CLASS: spmd.shard_unit @unit0 modules [""]
// CLASS-SAME: padded = 2560, [#spmd.segment<"wte.weight"
// CLASS: spmd.shard_unit @unit1 modules [""]
// CLASS-SAME: "scale"
// CLASS: spmd.shard_unit @unit2 modules ["h.0"]
// CLASS-SAME: padded = 1536, [#spmd.segment<"h.0.fc.weight", {{.*}}>, #spmd.segment<"h.0.fc.bias", {{.*}} offset = 1024
// CLASS: spmd.shard_unit @unit3 modules ["h.1"]
// CLASS-NOT: shard_unit

// ALWAYS: spmd.mesh @mesh ["data" = 1]
// ALWAYS: spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] replicate layout
// ALWAYS: spmd.shard_unit @unit2 modules ["h.0.fc"]
// ALWAYS: spmd.shard_unit @unit3 modules ["h.1.fc"]

// Each fc has 1056 elements; the tied weight is the root's.
// SIZE: spmd.shard_unit @unit2 modules ["h.0.fc"]
// SIZE: spmd.shard_unit @unit3 modules ["h.1.fc"]

module attributes {
    spmd.tied = {wte.weight = ["lm_head.weight"]},
    spmd.param_groups = [{parameters = ["wte.weight", "h.0.fc.weight", "h.1.fc.weight"]}, {parameters = ["h.0.fc.bias", "h.1.fc.bias"]}]} {
  spmd.module_tree @tree {
    spmd.module "" class "train.GPT" bases ["torch.nn.modules.module.Module"] params ["scale"] buffers [] children ["wte", "h", "lm_head"]
    spmd.module "wte" class "torch.nn.modules.sparse.Embedding" bases [] params ["wte.weight"] buffers [] children []
    spmd.module "h" class "torch.nn.modules.container.ModuleList" bases [] params [] buffers [] children ["h.0", "h.1"]
    spmd.module "h.0" class "train.Block" bases ["train.Base"] params [] buffers [] children ["h.0.fc"]
    spmd.module "h.0.fc" class "torch.nn.modules.linear.Linear" bases [] params ["h.0.fc.weight", "h.0.fc.bias"] buffers [] children []
    spmd.module "h.1" class "train.Block" bases ["train.Base"] params [] buffers [] children ["h.1.fc"]
    spmd.module "h.1.fc" class "torch.nn.modules.linear.Linear" bases [] params ["h.1.fc.weight", "h.1.fc.bias"] buffers [] children []
    spmd.module "lm_head" class "torch.nn.modules.linear.Linear" bases [] params ["lm_head.weight"] buffers [] children []
  }
  func.func @step(
      %0: tensor<65x32xf32> {spmd.arg = #spmd.param<"wte.weight", trainable>},
      %1: tensor<32x32xf32> {spmd.arg = #spmd.param<"h.0.fc.weight", trainable>},
      %2: tensor<32xf32> {spmd.arg = #spmd.param<"h.0.fc.bias", trainable>},
      %3: tensor<32x32xf32> {spmd.arg = #spmd.param<"h.1.fc.weight", trainable>},
      %4: tensor<32xf32> {spmd.arg = #spmd.param<"h.1.fc.bias", trainable>},
      %5: tensor<1xf32> {spmd.arg = #spmd.param<"scale">})
      -> (tensor<65x32xf32> {spmd.result = #spmd.update<#spmd.param<"wte.weight", trainable>>},
          tensor<32x32xf32> {spmd.result = #spmd.update<#spmd.param<"h.0.fc.weight", trainable>>},
          tensor<32xf32> {spmd.result = #spmd.update<#spmd.param<"h.0.fc.bias", trainable>>},
          tensor<32x32xf32> {spmd.result = #spmd.update<#spmd.param<"h.1.fc.weight", trainable>>},
          tensor<32xf32> {spmd.result = #spmd.update<#spmd.param<"h.1.fc.bias", trainable>>}) {
    return %0, %1, %2, %3, %4 : tensor<65x32xf32>, tensor<32x32xf32>, tensor<32xf32>, tensor<32x32xf32>, tensor<32xf32>
  }
}
