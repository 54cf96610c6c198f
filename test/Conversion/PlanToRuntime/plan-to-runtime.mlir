// RUN: spmd-translate --plan-to-json=%s | FileCheck %s --check-prefix=PLAN
// RUN: spmd-translate --plan-to-manifest=%s | FileCheck %s --check-prefix=MANIFEST
// RUN: spmd-translate --plan-to-json=%s > %t.1 && spmd-translate --plan-to-json=%s > %t.2 && cmp %t.1 %t.2

module attributes {
    spmd.step = {name = "linear"}, spmd.tied = {w = ["head.w"]}, spmd.result_tree = "leaf", spmd.zero_gradient = ["b"],
    spmd.compile = {target = "host", mode = "fully_shard", policy = "none", view = "global"}} {
  spmd.mesh @mesh ["data" = 2]
  spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
    #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>,
    #spmd.segment<"b", shape = [4], group = 0, offset = 128, numel = 4, trainable = true>]>
  // PLAN: "format": "spmd-plan",
  // PLAN-NEXT: "version": 2,
  // PLAN-NEXT: "streams": ["compute","gather","reduce","scalar"],
  // PLAN-NEXT: "communicators": ["gather"],
  // PLAN-NEXT: "buffers": [
  // PLAN-NEXT: {"id":0,"name":"unit0 param","class":"parameters","offset":0,"bytes":512,"state":true,"loc":"{{.*}}"},
  // MANIFEST: "format": "spmd-artifact",
  // MANIFEST: "compiler": "{{[0-9.]+}}",
  // MANIFEST-NEXT: "step": "linear",
  // MANIFEST-NEXT: "target": "host",
  // MANIFEST-NEXT: "mode": "fully_shard",
  // MANIFEST-NEXT: "policy": "none",
  // MANIFEST-NEXT: "view": "global",
  // MANIFEST-NEXT: "mesh": [
  // MANIFEST-NEXT: {"name":"data","size":2}
  // MANIFEST: "ranks": 2,
  // MANIFEST-NEXT: "arena": {"state_bytes":576,"transient_bytes":1344,"bytes":1920,"classes":{"gathered":1024,"optimizer state":8,"parameters":512}},
  // MANIFEST-NEXT: "programs": [
  // MANIFEST-NEXT: {"name":"train_step","plan":"train_step.plan.json","trace_hash":"{{[0-9a-f]+}}","hash":"{{[0-9a-f]+}}"}
  // MANIFEST: {"name":"unit0","modules":[""],"dtype":"f32","padded":256,"chunk":128,"segments":[{"name":"w","aliases":["head.w"],"shape":[4,16],"group":0,"offset":0,"numel":64,"trainable":true},{"name":"b","aliases":[]
  // MANIFEST: "state": [
  // MANIFEST-NEXT: {"kind":"shard","unit":"unit0","state":"param","numel":128,"init":null,"dtype":"f32","offset":0,"buffer":0},
  // MANIFEST-NEXT: {"kind":"table","unit":"unit0","state":"step","numel":2,"init":0,"dtype":"f32","offset":512,"buffer":1}
  // MANIFEST: "batch": [
  // MANIFEST-NEXT: {"name":"x","dtype":"i64","shape":[7,4],"dim":0,"pre":1,"chunk":4,"local_shape":[4,4],"offset":576,"buffer":2,"index_bound":65,"ignore_index":-100}
  // MANIFEST: "hyper": [
  // MANIFEST-NEXT: {"name":"lr","group":0,"dtype":"f64","value":0.5,"offset":704,"buffer":3}
  // MANIFEST: "outputs": [
  // MANIFEST-NEXT: {"kind":"loss","path":"loss","state":"replicated","dtype":"f32","shape":[],"local_shape":[],"offset":832,"buffer":5}
  // MANIFEST: "result_tree": "leaf",
  // MANIFEST-NEXT: "zero_gradient": ["b"],
  // MANIFEST: "values": [
  // MANIFEST-NEXT: {"source":"shard","unit":"unit0","state":"param","dtype":"f32","bytes":512},
  // MANIFEST-NEXT: {"source":"hyper","name":"lr","group":0,"dtype":"f64","bytes":8},
  // MANIFEST-NEXT: {"compute":"all_gather","unit":"unit0","dtype":"f32","count":128,"of":[0],"bytes":[1024]},
  // MANIFEST-NEXT: {"part":2,"at":0,"bytes":256,"segment":"w","unit":"unit0"},
  // MANIFEST-NEXT: {"part":2,"at":16,"bytes":16},
  // MANIFEST-NEXT: {"compute":"kernel","kernel":"k0","args":["r","r","w","w"],"of":[3,1],"bytes":[16,4],"reads":{{\[\[0\],\[0,1\]\]}},"by_rank":[1],"along":["data"]},
  // MANIFEST-NEXT: {"join":[5],"at":[512],"bytes":1024,"segments":["b"],"unit":"unit0"},
  // MANIFEST-NEXT: {"target":"loss","path":"loss","dtype":"f32","of":6},
  // MANIFEST-NEXT: {"target":"table","unit":"unit0","state":"step","dtype":"f32","of":5}
  // MANIFEST-NEXT: ]
  plan.dataflow {
    %p = plan.source #spmd.shard<@unit0, "param"> type tensor<128xf32> : <512>
    %lr = plan.source #spmd.hyper<"lr", group = 0, value = 0.5> type tensor<f64> : <8>
    %w = plan.compute #plan.collective<all_gather f32 counts[128] unit "unit0">(%p) : (!plan.bytes<512>) -> !plan.bytes<1024>
    %v = plan.part %w at 0 segment "w" of "unit0" : <1024> -> <256>
    %q = plan.part %w at 16 : <1024> -> <16>
    %g, %l = plan.compute #plan.kernel<@k0>(%v, %lr) {along = ["data"], by_rank = array<i32: 1>, reads = [array<i32: 0>, array<i32: 0, 1>]} : (!plan.bytes<256>, !plan.bytes<8>) -> (!plan.bytes<16>, !plan.bytes<4>)
    %f = plan.join(%g) at [512] segments ["b"] of "unit0" : (!plan.bytes<16>) -> !plan.bytes<1024>
    plan.target %l is #spmd.loss<"loss"> type tensor<f32> : <4>
    plan.target %g is #spmd.table<@unit0, "step", init = 0.0> type tensor<2xf32> : <16>
  }
  plan.program @train_step ranks 2 state 576 transient 1344 lower_bound 1344 peak {gathered = 1024 : i64} {
    plan.communicator @gather
    plan.buffer @p parameters at 0 bytes 512 state "unit0 param"
    plan.buffer @t optimizer_state at 512 bytes 8 state "unit0 step"
    plan.buffer @x io at 576 bytes 128 "x"
    plan.buffer @lr io at 704 bytes 8 "lr 0"
    plan.buffer @w gathered at 896 bytes 1024 "unit0 gathered"
    plan.buffer @l io at 768 bytes 128 "loss"
    plan.input r @p[0 : 512] as #spmd.shard<@unit0, "param"> type tensor<128xf32>
    plan.input r @t[0 : 8] as #spmd.table<@unit0, "step", init = 0.0> type tensor<2xf32>
    plan.input r @x[0 : 128] as #spmd.batch<"x", dim = 0> type tensor<4x4xi64>
        layout #spmd.sharding<global = [7, 4], [shard<0, 1, 4>]> {index_bound = 65 : i64, ignore_index = -100 : i64}
    plan.input r @lr[0 : 8] as #spmd.hyper<"lr", group = 0, value = 0.5> type tensor<f64>
    plan.output r @l[64 : 4] as #spmd.loss<"loss"> type tensor<f32>
    // PLAN: "commands": [
    // PLAN-NEXT: {"op":"all_gather","stream":"gather","comm":"gather","unit":"unit0","dtype":"f32","count":128,"send":{"buffer":0,"offset":0,"bytes":512,"access":"r"},"recv":{"buffer":4,"offset":0,"bytes":1024,"access":"w"},"loc":"h.0, train.py:10"},
    %0 = plan.all_gather(r @p[0 : 512], w @w[0 : 1024]) count 128 : f32 unit "unit0" comm @gather on gather
        loc(fused<#spmd.src<"h.0">>["train.py":10:3])
    // PLAN-NEXT: {"op":"wait","stream":"compute","for":0,"loc":"{{.*}}"},
    %1 = plan.wait for %0 on compute
    // PLAN-NEXT: {"op":"kernel","stream":"compute","kernel":"k0","parallel":4,"grain":1,"args":[{"buffer":4,"offset":64,"coord":[32],"bytes":64,"access":"r"},{"buffer":5,"offset":0,"bytes":128,"access":"w"}],"loc"
    %2 = plan.kernel @k0(r @w[64 + 32 * c0 : 64], w @l[0 : 128]) parallel 4 grain 1 on compute
    // PLAN-NEXT: {"op":"fill","stream":"compute","bytes":4,"value":0,"dst":{"buffer":5,"offset":64,"bytes":4,"access":"w"},"loc"
    %3 = plan.fill(w @l[64 : 4]) value 0 on compute
  }
}
