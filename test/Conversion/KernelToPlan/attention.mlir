// RUN: spmd-opt %s -spmd-convert-kernel-to-plan -spmd-verify-plan -o %t.mlir && FileCheck %s < %t.mlir
// RUN: spmd-translate --plan-to-json=%t.mlir | FileCheck %s --check-prefix=JSON
// RUN: spmd-translate --plan-to-manifest=%t.mlir | FileCheck %s --check-prefix=VALUES

// An attention says what it computes: a packed projection's views, and of the mask the window of keys, here causal, or a
// condition where it says more. Its backward writes a packed gradient at once.

// CHECK: plan.attention @k0 <f32, batch = 1, heads = 2, kvHeads = 1, qLen = 4, kvLen = 4, headDim = 4, vDim = 4, scale = 5.000000e-01 : f64, high = 0, q = <offset = 0, batch = 64, head = 4, row = 16>, k = <offset = 8, batch = 64, head = 4, row = 16>, v = <offset = 12, batch = 64, head = 4, row = 16>, out = <offset = 0, batch = 32, head = 4, row = 8>>
// CHECK-SAME: q(r @[[X:.*]][0 : 256]) k(r @[[X]][0 : 256]) v(r @[[X]][0 : 256]) out(w @[[O:.*]][0 : 128]) lse(w @[[L:.*]][0 : 32]) parallel 2 grain 2 on compute
// CHECK-NEXT: plan.attention @k1 <f32, {{.*}} mask = condition, high = 0, q = {{.*}}> q({{.*}}) k({{.*}}) v({{.*}}) mask(r @[[P:.*]][0 : 4]) out(w @[[O2:.*]][0 : 128]) lse(w @[[L2:.*]][0 : 32])
// CHECK-NEXT: plan.attention_backward @k2 <f32, {{.*}} scale = 5.000000e-01 : f64, high = 0, {{.*}} dout = <offset = 0, batch = 32, head = 4, row = 8>, dq = <offset = 0, batch = 64, head = 4, row = 16>, dk = <offset = 8, {{.*}}>, dv = <offset = 12, {{.*}}>>
// CHECK-SAME: dout(r @[[O2]][0 : 128]) q(r @[[X]][0 : 256]) k(r @[[X]][0 : 256]) v(r @[[X]][0 : 256]) out(r @[[O]][0 : 128]) lse(r @[[L]][0 : 32]) gradients(w @{{.*}}[0 : 256]) parallel 1 grain 1 on compute

// JSON: "op":"attention","stream":"compute","kernel":"k0","parallel":2,"grain":2,"dtype":"f32","batch":1,"heads":2,"kv_heads":1,"q_len":4,"kv_len":4,"head_dim":4,"v_dim":4,"scale":0.5,"window_high":0,
// JSON-SAME: "views":{"q":{"offset":0,"batch":64,"head":4,"row":16},"k":{"offset":8,{{.*}}},"v":{"offset":12,{{.*}}},"out":{"offset":0,"batch":32,"head":4,"row":8}}
// JSON-SAME: "q":{"buffer":0,{{.*}}"access":"r"},"k":{{.*}},"v":{{.*}},"out":{{.*}}"access":"w"},"lse":{{.*}}"bytes":32,"access":"w"},"loc"
// JSON-NEXT: "op":"attention",{{.*}}"kernel":"k1",{{.*}}"mask":"condition","window_high":0,{{.*}}"mask_inputs":{{\[}}{"buffer":1,"offset":0,"bytes":4,"access":"r"}],"out"
// JSON-NEXT: "op":"attention_backward",{{.*}}"kernel":"k2",{{.*}}"dout":{"buffer":{{.*}}"gradients":{{\[}}{"buffer":{{[0-9]+}},"offset":0,"bytes":256,"access":"w"}],"loc"

// VALUES: {"compute":"attention","kernel":"k0","args":["r","r","r","w","w"],"dtype":"f32","batch":1,"heads":2,{{.*}}"window_high":0,"views":{{.*}},"of":[0,0,0],"bytes":[128,32]},
// VALUES-NEXT: {"compute":"attention","kernel":"k1","args":["r","r","r","r","w","w"],{{.*}}"of":[0,0,0,1],"bytes":[128,32]},
// VALUES-NEXT: {"compute":"attention_backward","kernel":"k2","args":["r","r","r","r","r","r","w"],{{.*}}"of":[4,0,0,0,2,3],"bytes":[256]},

module attributes {spmd.step = {name = "attention"}} {
  spmd.mesh @mesh ["data" = 1]
  func.func @step(%x: tensor<1x4x16xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %p: tensor<1x4xi1> {spmd.arg = #spmd.batch<"p", dim = 0>})
      -> (tensor<1x4x16xf32> {spmd.result = #spmd.output<"dx">}) {
    %out, %lse = kernel.attention
        <batch = 1, heads = 2, kvHeads = 1, qLen = 4, kvLen = 4, headDim = 4, vDim = 4> scale 0.5
        q(%x at <offset = 0, batch = 64, head = 4, row = 16> : tensor<1x4x16xf32>)
        k(%x at <offset = 8, batch = 64, head = 4, row = 16> : tensor<1x4x16xf32>)
        v(%x at <offset = 12, batch = 64, head = 4, row = 16> : tensor<1x4x16xf32>) mask() {
      %t = kernel.index 2
      %s = kernel.index 3
      %c = arith.cmpi sle, %s, %t : index
      kernel.yield %c : i1
    } out(<offset = 0, batch = 32, head = 4, row = 8> : tensor<1x4x8xf32>) lse(tensor<1x2x4xf32>) {symbol = "k0"}
    %out2, %lse2 = kernel.attention
        <batch = 1, heads = 2, kvHeads = 1, qLen = 4, kvLen = 4, headDim = 4, vDim = 4> scale 0.5
        q(%x at <offset = 0, batch = 64, head = 4, row = 16> : tensor<1x4x16xf32>)
        k(%x at <offset = 8, batch = 64, head = 4, row = 16> : tensor<1x4x16xf32>)
        v(%x at <offset = 12, batch = 64, head = 4, row = 16> : tensor<1x4x16xf32>)
        mask(%m = %p at (d0, d1, d2, d3) -> (d0 * 4 + d3) : tensor<1x4xi1>) {
      %t = kernel.index 2
      %s = kernel.index 3
      %c = arith.cmpi sle, %s, %t : index
      %both = arith.andi %c, %m : i1
      kernel.yield %both : i1
    } out(<offset = 0, batch = 32, head = 4, row = 8> : tensor<1x4x8xf32>) lse(tensor<1x2x4xf32>) {symbol = "k1"}
    %dx = kernel.attention_backward
        <batch = 1, heads = 2, kvHeads = 1, qLen = 4, kvLen = 4, headDim = 4, vDim = 4> scale 0.5
        dout(%out2 at <offset = 0, batch = 32, head = 4, row = 8> : tensor<1x4x8xf32>)
        q(%x at <offset = 0, batch = 64, head = 4, row = 16> : tensor<1x4x16xf32>)
        k(%x at <offset = 8, batch = 64, head = 4, row = 16> : tensor<1x4x16xf32>)
        v(%x at <offset = 12, batch = 64, head = 4, row = 16> : tensor<1x4x16xf32>) mask() {
      %t = kernel.index 2
      %s = kernel.index 3
      %c = arith.cmpi sle, %s, %t : index
      kernel.yield %c : i1
    } out(%out at <offset = 0, batch = 32, head = 4, row = 8> : tensor<1x4x8xf32>) lse(%lse : tensor<1x2x4xf32>)
        dq(<offset = 0, batch = 64, head = 4, row = 16>) dk(<offset = 8, batch = 64, head = 4, row = 16>)
        dv(<offset = 12, batch = 64, head = 4, row = 16>) {symbol = "k2"} -> tensor<1x4x16xf32>
    return %dx : tensor<1x4x16xf32>
  }
}
