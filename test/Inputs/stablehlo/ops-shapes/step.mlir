"builtin.module"() <{sym_name = "jit_step"}> ({
  "func.func"() <{arg_attrs = [{}, {}, {}, {}], function_type = (tensor<6x8xf32>, tensor<i32>, tensor<4x6xf32>, tensor<f32>) -> (tensor<6x8xf32>, tensor<i32>, tensor<f32>), res_attrs = [{jax.result_info = "result[0]['arg0']"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg24: tensor<6x8xf32>, %arg25: tensor<i32>, %arg26: tensor<4x6xf32>, %arg27: tensor<f32>):
    %67 = "stablehlo.constant"() <{value = dense<[5.000000e-01, 5.000000e-01, 2.500000e-01, 2.000000e+00, 2.000000e+00, 2.000000e+00, 1.000000e+00, 7.500000e-01]> : tensor<8xf32>}> : () -> tensor<8xf32>
    %68 = "stablehlo.constant"() <{value = dense<[1, 5]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %69 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %70 = "stablehlo.pad"(%arg24, %69) <{edge_padding_high = array<i64: 2, 0>, edge_padding_low = array<i64: 1, -1>, interior_padding = array<i64: 1, 0>}> : (tensor<6x8xf32>, tensor<f32>) -> tensor<14x7xf32>
    %71 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %72 = "stablehlo.pad"(%arg24, %71) <{edge_padding_high = array<i64: 0, -3>, edge_padding_low = array<i64: 0, 2>, interior_padding = array<i64: 2, 1>}> : (tensor<6x8xf32>, tensor<f32>) -> tensor<16x14xf32>
    %73 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %74 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %75 = "stablehlo.dynamic_slice"(%arg24, %73, %74) <{slice_sizes = array<i64: 2, 3>}> : (tensor<6x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    %76 = "stablehlo.slice"(%arg26) <{limit_indices = array<i64: 2, 3>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<2x3xf32>
    %77 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %78 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
    %79 = "stablehlo.dynamic_update_slice"(%arg24, %76, %77, %78) : (tensor<6x8xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<6x8xf32>
    %80 = "stablehlo.reverse"(%arg24) <{dimensions = array<i64: 0>}> : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %81 = "stablehlo.slice"(%arg24) <{limit_indices = array<i64: 6, 8>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 3>}> : (tensor<6x8xf32>) -> tensor<6x3xf32>
    %82 = "stablehlo.slice"(%arg24) <{limit_indices = array<i64: 5, 7>, start_indices = array<i64: 1, 2>, strides = array<i64: 2, 1>}> : (tensor<6x8xf32>) -> tensor<2x5xf32>
    %83 = "stablehlo.slice"(%arg24) <{limit_indices = array<i64: 2, 8>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<6x8xf32>) -> tensor<2x8xf32>
    %84 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %85 = "stablehlo.broadcast_in_dim"(%84) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x8xf32>
    %86 = "stablehlo.multiply"(%83, %85) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    %87 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %88 = "stablehlo.broadcast_in_dim"(%87) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x8xf32>
    %89 = "stablehlo.concatenate"(%arg24, %86, %88) <{dimension = 0 : i64}> : (tensor<6x8xf32>, tensor<2x8xf32>, tensor<1x8xf32>) -> tensor<9x8xf32>
    %90 = "stablehlo.broadcast_in_dim"(%67) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
    %91 = "stablehlo.broadcast_in_dim"(%90) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<6x8xf32>
    %92 = "stablehlo.multiply"(%arg24, %91) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %93 = "stablehlo.transpose"(%arg24) <{permutation = array<i64: 1, 0>}> : (tensor<6x8xf32>) -> tensor<8x6xf32>
    %94 = "stablehlo.dot_general"(%93, %arg24) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x6xf32>, tensor<6x8xf32>) -> tensor<8x8xf32>
    %95 = "func.call"(%arg24) <{callee = @_flip}> : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %96 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<8xf32>
    %97 = "stablehlo.broadcast_in_dim"(%96) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
    %98 = "stablehlo.broadcast_in_dim"(%97) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<6x8xf32>
    %99 = "stablehlo.multiply"(%arg24, %98) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %100 = "stablehlo.reshape"(%arg24) : (tensor<6x8xf32>) -> tensor<3x2x8xf32>
    %101 = "stablehlo.transpose"(%100) <{permutation = array<i64: 2, 0, 1>}> : (tensor<3x2x8xf32>) -> tensor<8x3x2xf32>
    %102 = "stablehlo.reshape"(%101) : (tensor<8x3x2xf32>) -> tensor<4x12xf32>
    %103 = "func.call"(%arg24) <{callee = @_roll_static}> : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %104 = "stablehlo.reshape"(%arg24) : (tensor<6x8xf32>) -> tensor<1x6x1x8xf32>
    %105 = "stablehlo.broadcast_in_dim"(%104) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x6x1x8xf32>) -> tensor<2x6x1x8xf32>
    %106 = "stablehlo.reshape"(%105) : (tensor<2x6x1x8xf32>) -> tensor<12x8xf32>
    %107 = "stablehlo.dot_general"(%arg24, %arg24) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [1], rhs_batching_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<8x6x6xf32>
    %108 = "stablehlo.transpose"(%107) <{permutation = array<i64: 2, 1, 0>}> : (tensor<8x6x6xf32>) -> tensor<6x6x8xf32>
    %109 = "stablehlo.slice"(%arg26) <{limit_indices = array<i64: 4, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<4x1xf32>
    %110 = "stablehlo.broadcast_in_dim"(%67) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
    %111 = "stablehlo.broadcast_in_dim"(%109) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %112 = "stablehlo.broadcast_in_dim"(%110) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %113 = "stablehlo.add"(%111, %112) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %114 = "stablehlo.dot_general"(%113, %arg24) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
    %115 = "stablehlo.dot_general"(%arg26, %114) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4xf32>
    %116 = "stablehlo.slice"(%arg24) <{limit_indices = array<i64: 1, 8>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<6x8xf32>) -> tensor<1x8xf32>
    %117 = "stablehlo.reshape"(%116) : (tensor<1x8xf32>) -> tensor<8xf32>
    %118 = "stablehlo.slice"(%arg24) <{limit_indices = array<i64: 2, 8>, start_indices = array<i64: 1, 0>, strides = array<i64: 1, 1>}> : (tensor<6x8xf32>) -> tensor<1x8xf32>
    %119 = "stablehlo.reshape"(%118) : (tensor<1x8xf32>) -> tensor<8xf32>
    %120 = "stablehlo.broadcast_in_dim"(%117) <{broadcast_dimensions = array<i64: 0>}> : (tensor<8xf32>) -> tensor<8x1xf32>
    %121 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
    %122 = "stablehlo.broadcast_in_dim"(%120) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<8x1xf32>) -> tensor<8x8xf32>
    %123 = "stablehlo.broadcast_in_dim"(%121) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<8x8xf32>
    %124 = "stablehlo.multiply"(%122, %123) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %125 = "stablehlo.reshape"(%arg24) : (tensor<6x8xf32>) -> tensor<48xf32>
    %126 = "stablehlo.reshape"(%arg24) : (tensor<6x8xf32>) -> tensor<48xf32>
    %127 = "stablehlo.dot_general"(%125, %126) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<48xf32>, tensor<48xf32>) -> tensor<f32>
    %128 = "stablehlo.constant"() <{value = dense<2.000000e-02> : tensor<f32>}> : () -> tensor<f32>
    %129 = "stablehlo.multiply"(%127, %128) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %130 = "stablehlo.reshape"(%arg24) : (tensor<6x8xf32>) -> tensor<3x2x8xf32>
    %131 = "stablehlo.reshape"(%arg24) : (tensor<6x8xf32>) -> tensor<3x2x8xf32>
    %132 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %133 = "stablehlo.broadcast_in_dim"(%132) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x2x8xf32>
    %134 = "stablehlo.add"(%131, %133) : (tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> tensor<3x2x8xf32>
    %135 = "stablehlo.dot_general"(%130, %134) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> tensor<3x8x8xf32>
    %136 = "stablehlo.slice"(%arg24) <{limit_indices = array<i64: 3, 8>, start_indices = array<i64: 2, 0>, strides = array<i64: 1, 1>}> : (tensor<6x8xf32>) -> tensor<1x8xf32>
    %137 = "stablehlo.reshape"(%136) : (tensor<1x8xf32>) -> tensor<8xf32>
    %138 = "stablehlo.transpose"(%arg24) <{permutation = array<i64: 1, 0>}> : (tensor<6x8xf32>) -> tensor<8x6xf32>
    %139 = "stablehlo.dot_general"(%137, %138) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8xf32>, tensor<8x6xf32>) -> tensor<6xf32>
    %140 = "stablehlo.reshape"(%arg24) : (tensor<6x8xf32>) -> tensor<3x2x8xf32>
    %141 = "stablehlo.reshape"(%arg24) : (tensor<6x8xf32>) -> tensor<8x3x2xf32>
    %142 = "stablehlo.dot_general"(%140, %141) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [1, 2], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3x2x8xf32>, tensor<8x3x2xf32>) -> tensor<3x2xf32>
    %143 = "stablehlo.transpose"(%arg24) <{permutation = array<i64: 1, 0>}> : (tensor<6x8xf32>) -> tensor<8x6xf32>
    %144 = "stablehlo.reshape"(%143) : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %145 = "stablehlo.slice"(%144) <{limit_indices = array<i64: 4, 6>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<8x6xf32>) -> tensor<4x6xf32>
    %146 = "stablehlo.slice"(%144) <{limit_indices = array<i64: 8, 6>, start_indices = array<i64: 4, 0>, strides = array<i64: 1, 1>}> : (tensor<8x6xf32>) -> tensor<4x6xf32>
    %147 = "stablehlo.multiply"(%145, %146) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %148 = "stablehlo.slice"(%147) <{limit_indices = array<i64: 2, 6>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<2x6xf32>
    %149 = "stablehlo.slice"(%147) <{limit_indices = array<i64: 4, 6>, start_indices = array<i64: 2, 0>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<2x6xf32>
    %150 = "stablehlo.multiply"(%148, %149) : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
    %151 = "stablehlo.slice"(%150) <{limit_indices = array<i64: 1, 6>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<2x6xf32>) -> tensor<1x6xf32>
    %152 = "stablehlo.slice"(%150) <{limit_indices = array<i64: 2, 6>, start_indices = array<i64: 1, 0>, strides = array<i64: 1, 1>}> : (tensor<2x6xf32>) -> tensor<1x6xf32>
    %153 = "stablehlo.multiply"(%151, %152) : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<1x6xf32>
    %154 = "stablehlo.reshape"(%153) : (tensor<1x6xf32>) -> tensor<6xf32>
    %155 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %156 = "stablehlo.reduce"(%arg24, %155) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg108: tensor<f32>, %arg109: tensor<f32>):
      %811 = "stablehlo.maximum"(%arg108, %arg109) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%811) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<8xf32>
    %157 = "stablehlo.reshape"(%156) : (tensor<8xf32>) -> tensor<1x8xf32>
    %158 = "stablehlo.broadcast_in_dim"(%157) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<6x8xf32>
    %159 = "stablehlo.compare"(%arg24, %158) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %160 = "stablehlo.convert"(%159) : (tensor<6x8xi1>) -> tensor<6x8xf32>
    %161 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %162 = "stablehlo.reduce"(%160, %161) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg106: tensor<f32>, %arg107: tensor<f32>):
      %810 = "stablehlo.add"(%arg106, %arg107) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%810) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<8xf32>
    %163 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<f32>}> : () -> tensor<f32>
    %164 = "stablehlo.reduce"(%arg24, %163) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg104: tensor<f32>, %arg105: tensor<f32>):
      %809 = "stablehlo.minimum"(%arg104, %arg105) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%809) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %165 = "stablehlo.reshape"(%164) : (tensor<f32>) -> tensor<1x1xf32>
    %166 = "stablehlo.broadcast_in_dim"(%165) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xf32>) -> tensor<6x8xf32>
    %167 = "stablehlo.compare"(%arg24, %166) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %168 = "stablehlo.convert"(%167) : (tensor<6x8xi1>) -> tensor<6x8xf32>
    %169 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %170 = "stablehlo.reduce"(%168, %169) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg102: tensor<f32>, %arg103: tensor<f32>):
      %808 = "stablehlo.add"(%arg102, %arg103) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%808) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %171 = "stablehlo.transpose"(%arg24) <{permutation = array<i64: 1, 0>}> : (tensor<6x8xf32>) -> tensor<8x6xf32>
    %172 = "stablehlo.reshape"(%171) : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %173 = "stablehlo.slice"(%172) <{limit_indices = array<i64: 4, 6>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<8x6xf32>) -> tensor<4x6xf32>
    %174 = "stablehlo.slice"(%172) <{limit_indices = array<i64: 8, 6>, start_indices = array<i64: 4, 0>, strides = array<i64: 1, 1>}> : (tensor<8x6xf32>) -> tensor<4x6xf32>
    %175 = "stablehlo.add"(%173, %174) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %176 = "stablehlo.slice"(%175) <{limit_indices = array<i64: 2, 6>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<2x6xf32>
    %177 = "stablehlo.slice"(%175) <{limit_indices = array<i64: 4, 6>, start_indices = array<i64: 2, 0>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<2x6xf32>
    %178 = "stablehlo.add"(%176, %177) : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
    %179 = "stablehlo.slice"(%178) <{limit_indices = array<i64: 1, 6>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<2x6xf32>) -> tensor<1x6xf32>
    %180 = "stablehlo.slice"(%178) <{limit_indices = array<i64: 2, 6>, start_indices = array<i64: 1, 0>, strides = array<i64: 1, 1>}> : (tensor<2x6xf32>) -> tensor<1x6xf32>
    %181 = "stablehlo.add"(%179, %180) : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<1x6xf32>
    %182 = "stablehlo.reshape"(%181) : (tensor<1x6xf32>) -> tensor<6xf32>
    %183 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %184 = "stablehlo.reduce"(%arg24, %183) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg100: tensor<f32>, %arg101: tensor<f32>):
      %807 = "stablehlo.maximum"(%arg100, %arg101) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%807) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<8xf32>
    %185 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %186 = "stablehlo.broadcast_in_dim"(%185) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
    %187 = "stablehlo.maximum"(%186, %184) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %188 = "stablehlo.is_finite"(%187) : (tensor<8xf32>) -> tensor<8xi1>
    %189 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %190 = "stablehlo.broadcast_in_dim"(%189) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
    %191 = "stablehlo.select"(%188, %187, %190) : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %192 = "stablehlo.broadcast_in_dim"(%191) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
    %193 = "stablehlo.broadcast_in_dim"(%192) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<6x8xf32>
    %194 = "stablehlo.subtract"(%arg24, %193) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %195 = "stablehlo.exponential"(%194) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %196 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %197 = "stablehlo.reduce"(%195, %196) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg98: tensor<f32>, %arg99: tensor<f32>):
      %806 = "stablehlo.add"(%arg98, %arg99) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%806) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<8xf32>
    %198 = "stablehlo.abs"(%197) : (tensor<8xf32>) -> tensor<8xf32>
    %199 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %200 = "stablehlo.broadcast_in_dim"(%199) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
    %201 = "stablehlo.compare"(%197, %200) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %202 = "stablehlo.log"(%198) : (tensor<8xf32>) -> tensor<8xf32>
    %203 = "stablehlo.add"(%202, %191) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %204 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %205:4 = "func.call"(%arg24, %204) <{callee = @_var}> : (tensor<6x8xf32>, tensor<i32>) -> (tensor<6xf32>, tensor<6x8xf32>, tensor<f32>, tensor<i1>)
    %206 = "stablehlo.sine"(%arg24) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %207 = "stablehlo.sine"(%206) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %208 = "func.call"(%68) <{callee = @_one_hot}> : (tensor<2xi32>) -> tensor<2x6xf32>
    %209 = "stablehlo.dot_general"(%208, %arg24) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x6xf32>, tensor<6x8xf32>) -> tensor<2x8xf32>
    %210 = "stablehlo.sine"(%70) : (tensor<14x7xf32>) -> tensor<14x7xf32>
    %211 = "stablehlo.cosine"(%70) : (tensor<14x7xf32>) -> tensor<14x7xf32>
    %212 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %213 = "stablehlo.reduce"(%210, %212) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg96: tensor<f32>, %arg97: tensor<f32>):
      %805 = "stablehlo.add"(%arg96, %arg97) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%805) : (tensor<f32>) -> ()
    }) : (tensor<14x7xf32>, tensor<f32>) -> tensor<f32>
    %214 = "stablehlo.constant"() <{value = dense<9.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %215 = "stablehlo.divide"(%213, %214) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %216 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %217 = "stablehlo.add"(%216, %215) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %218 = "stablehlo.sine"(%72) : (tensor<16x14xf32>) -> tensor<16x14xf32>
    %219 = "stablehlo.cosine"(%72) : (tensor<16x14xf32>) -> tensor<16x14xf32>
    %220 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %221 = "stablehlo.reduce"(%218, %220) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg94: tensor<f32>, %arg95: tensor<f32>):
      %804 = "stablehlo.add"(%arg94, %arg95) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%804) : (tensor<f32>) -> ()
    }) : (tensor<16x14xf32>, tensor<f32>) -> tensor<f32>
    %222 = "stablehlo.constant"() <{value = dense<2.240000e+02> : tensor<f32>}> : () -> tensor<f32>
    %223 = "stablehlo.divide"(%221, %222) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %224 = "stablehlo.add"(%217, %223) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %225 = "stablehlo.sine"(%75) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %226 = "stablehlo.cosine"(%75) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %227 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %228 = "stablehlo.reduce"(%225, %227) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg92: tensor<f32>, %arg93: tensor<f32>):
      %803 = "stablehlo.add"(%arg92, %arg93) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%803) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
    %229 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %230 = "stablehlo.divide"(%228, %229) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %231 = "stablehlo.add"(%224, %230) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %232 = "stablehlo.sine"(%79) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %233 = "stablehlo.cosine"(%79) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %234 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %235 = "stablehlo.reduce"(%232, %234) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg90: tensor<f32>, %arg91: tensor<f32>):
      %802 = "stablehlo.add"(%arg90, %arg91) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%802) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %236 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %237 = "stablehlo.divide"(%235, %236) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %238 = "stablehlo.add"(%231, %237) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %239 = "stablehlo.sine"(%80) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %240 = "stablehlo.cosine"(%80) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %241 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %242 = "stablehlo.reduce"(%239, %241) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg88: tensor<f32>, %arg89: tensor<f32>):
      %801 = "stablehlo.add"(%arg88, %arg89) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%801) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %243 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %244 = "stablehlo.divide"(%242, %243) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %245 = "stablehlo.add"(%238, %244) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %246 = "stablehlo.sine"(%81) : (tensor<6x3xf32>) -> tensor<6x3xf32>
    %247 = "stablehlo.cosine"(%81) : (tensor<6x3xf32>) -> tensor<6x3xf32>
    %248 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %249 = "stablehlo.reduce"(%246, %248) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg86: tensor<f32>, %arg87: tensor<f32>):
      %800 = "stablehlo.add"(%arg86, %arg87) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%800) : (tensor<f32>) -> ()
    }) : (tensor<6x3xf32>, tensor<f32>) -> tensor<f32>
    %250 = "stablehlo.constant"() <{value = dense<1.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %251 = "stablehlo.divide"(%249, %250) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %252 = "stablehlo.add"(%245, %251) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %253 = "stablehlo.sine"(%82) : (tensor<2x5xf32>) -> tensor<2x5xf32>
    %254 = "stablehlo.cosine"(%82) : (tensor<2x5xf32>) -> tensor<2x5xf32>
    %255 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %256 = "stablehlo.reduce"(%253, %255) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg84: tensor<f32>, %arg85: tensor<f32>):
      %799 = "stablehlo.add"(%arg84, %arg85) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%799) : (tensor<f32>) -> ()
    }) : (tensor<2x5xf32>, tensor<f32>) -> tensor<f32>
    %257 = "stablehlo.constant"() <{value = dense<1.000000e+01> : tensor<f32>}> : () -> tensor<f32>
    %258 = "stablehlo.divide"(%256, %257) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %259 = "stablehlo.add"(%252, %258) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %260 = "stablehlo.sine"(%89) : (tensor<9x8xf32>) -> tensor<9x8xf32>
    %261 = "stablehlo.cosine"(%89) : (tensor<9x8xf32>) -> tensor<9x8xf32>
    %262 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %263 = "stablehlo.reduce"(%260, %262) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg82: tensor<f32>, %arg83: tensor<f32>):
      %798 = "stablehlo.add"(%arg82, %arg83) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%798) : (tensor<f32>) -> ()
    }) : (tensor<9x8xf32>, tensor<f32>) -> tensor<f32>
    %264 = "stablehlo.constant"() <{value = dense<7.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %265 = "stablehlo.divide"(%263, %264) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %266 = "stablehlo.add"(%259, %265) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %267 = "stablehlo.sine"(%92) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %268 = "stablehlo.cosine"(%92) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %269 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %270 = "stablehlo.reduce"(%267, %269) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg80: tensor<f32>, %arg81: tensor<f32>):
      %797 = "stablehlo.add"(%arg80, %arg81) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%797) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %271 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %272 = "stablehlo.divide"(%270, %271) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %273 = "stablehlo.add"(%266, %272) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %274 = "stablehlo.sine"(%94) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %275 = "stablehlo.cosine"(%94) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %276 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %277 = "stablehlo.reduce"(%274, %276) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg78: tensor<f32>, %arg79: tensor<f32>):
      %796 = "stablehlo.add"(%arg78, %arg79) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%796) : (tensor<f32>) -> ()
    }) : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
    %278 = "stablehlo.constant"() <{value = dense<6.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %279 = "stablehlo.divide"(%277, %278) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %280 = "stablehlo.add"(%273, %279) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %281 = "stablehlo.sine"(%95) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %282 = "stablehlo.cosine"(%95) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %283 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %284 = "stablehlo.reduce"(%281, %283) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg76: tensor<f32>, %arg77: tensor<f32>):
      %795 = "stablehlo.add"(%arg76, %arg77) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%795) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %285 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %286 = "stablehlo.divide"(%284, %285) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %287 = "stablehlo.add"(%280, %286) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %288 = "stablehlo.sine"(%99) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %289 = "stablehlo.cosine"(%99) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %290 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %291 = "stablehlo.reduce"(%288, %290) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg74: tensor<f32>, %arg75: tensor<f32>):
      %794 = "stablehlo.add"(%arg74, %arg75) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%794) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %292 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %293 = "stablehlo.divide"(%291, %292) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %294 = "stablehlo.add"(%287, %293) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %295 = "stablehlo.sine"(%102) : (tensor<4x12xf32>) -> tensor<4x12xf32>
    %296 = "stablehlo.cosine"(%102) : (tensor<4x12xf32>) -> tensor<4x12xf32>
    %297 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %298 = "stablehlo.reduce"(%295, %297) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg72: tensor<f32>, %arg73: tensor<f32>):
      %793 = "stablehlo.add"(%arg72, %arg73) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%793) : (tensor<f32>) -> ()
    }) : (tensor<4x12xf32>, tensor<f32>) -> tensor<f32>
    %299 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %300 = "stablehlo.divide"(%298, %299) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %301 = "stablehlo.add"(%294, %300) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %302 = "stablehlo.sine"(%103) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %303 = "stablehlo.cosine"(%103) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %304 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %305 = "stablehlo.reduce"(%302, %304) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg70: tensor<f32>, %arg71: tensor<f32>):
      %792 = "stablehlo.add"(%arg70, %arg71) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%792) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %306 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %307 = "stablehlo.divide"(%305, %306) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %308 = "stablehlo.add"(%301, %307) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %309 = "stablehlo.sine"(%106) : (tensor<12x8xf32>) -> tensor<12x8xf32>
    %310 = "stablehlo.cosine"(%106) : (tensor<12x8xf32>) -> tensor<12x8xf32>
    %311 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %312 = "stablehlo.reduce"(%309, %311) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg68: tensor<f32>, %arg69: tensor<f32>):
      %791 = "stablehlo.add"(%arg68, %arg69) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%791) : (tensor<f32>) -> ()
    }) : (tensor<12x8xf32>, tensor<f32>) -> tensor<f32>
    %313 = "stablehlo.constant"() <{value = dense<9.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %314 = "stablehlo.divide"(%312, %313) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %315 = "stablehlo.add"(%308, %314) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %316 = "stablehlo.sine"(%108) : (tensor<6x6x8xf32>) -> tensor<6x6x8xf32>
    %317 = "stablehlo.cosine"(%108) : (tensor<6x6x8xf32>) -> tensor<6x6x8xf32>
    %318 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %319 = "stablehlo.reduce"(%316, %318) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%arg66: tensor<f32>, %arg67: tensor<f32>):
      %790 = "stablehlo.add"(%arg66, %arg67) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%790) : (tensor<f32>) -> ()
    }) : (tensor<6x6x8xf32>, tensor<f32>) -> tensor<f32>
    %320 = "stablehlo.constant"() <{value = dense<2.880000e+02> : tensor<f32>}> : () -> tensor<f32>
    %321 = "stablehlo.divide"(%319, %320) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %322 = "stablehlo.add"(%315, %321) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %323 = "stablehlo.sine"(%115) : (tensor<4xf32>) -> tensor<4xf32>
    %324 = "stablehlo.cosine"(%115) : (tensor<4xf32>) -> tensor<4xf32>
    %325 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %326 = "stablehlo.reduce"(%323, %325) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg64: tensor<f32>, %arg65: tensor<f32>):
      %789 = "stablehlo.add"(%arg64, %arg65) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%789) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %327 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %328 = "stablehlo.divide"(%326, %327) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %329 = "stablehlo.add"(%322, %328) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %330 = "stablehlo.sine"(%124) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %331 = "stablehlo.cosine"(%124) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %332 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %333 = "stablehlo.reduce"(%330, %332) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg62: tensor<f32>, %arg63: tensor<f32>):
      %788 = "stablehlo.add"(%arg62, %arg63) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%788) : (tensor<f32>) -> ()
    }) : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
    %334 = "stablehlo.constant"() <{value = dense<6.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %335 = "stablehlo.divide"(%333, %334) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %336 = "stablehlo.add"(%329, %335) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %337 = "stablehlo.sine"(%129) : (tensor<f32>) -> tensor<f32>
    %338 = "stablehlo.cosine"(%129) : (tensor<f32>) -> tensor<f32>
    %339 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %340 = "stablehlo.reduce"(%337, %339) <{dimensions = array<i64>}> ({
    ^bb0(%arg60: tensor<f32>, %arg61: tensor<f32>):
      %787 = "stablehlo.add"(%arg60, %arg61) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%787) : (tensor<f32>) -> ()
    }) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %341 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %342 = "stablehlo.divide"(%340, %341) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %343 = "stablehlo.add"(%336, %342) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %344 = "stablehlo.sine"(%135) : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
    %345 = "stablehlo.cosine"(%135) : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
    %346 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %347 = "stablehlo.reduce"(%344, %346) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%arg58: tensor<f32>, %arg59: tensor<f32>):
      %786 = "stablehlo.add"(%arg58, %arg59) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%786) : (tensor<f32>) -> ()
    }) : (tensor<3x8x8xf32>, tensor<f32>) -> tensor<f32>
    %348 = "stablehlo.constant"() <{value = dense<1.920000e+02> : tensor<f32>}> : () -> tensor<f32>
    %349 = "stablehlo.divide"(%347, %348) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %350 = "stablehlo.add"(%343, %349) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %351 = "stablehlo.sine"(%139) : (tensor<6xf32>) -> tensor<6xf32>
    %352 = "stablehlo.cosine"(%139) : (tensor<6xf32>) -> tensor<6xf32>
    %353 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %354 = "stablehlo.reduce"(%351, %353) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg56: tensor<f32>, %arg57: tensor<f32>):
      %785 = "stablehlo.add"(%arg56, %arg57) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%785) : (tensor<f32>) -> ()
    }) : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
    %355 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %356 = "stablehlo.divide"(%354, %355) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %357 = "stablehlo.add"(%350, %356) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %358 = "stablehlo.sine"(%142) : (tensor<3x2xf32>) -> tensor<3x2xf32>
    %359 = "stablehlo.cosine"(%142) : (tensor<3x2xf32>) -> tensor<3x2xf32>
    %360 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %361 = "stablehlo.reduce"(%358, %360) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg54: tensor<f32>, %arg55: tensor<f32>):
      %784 = "stablehlo.add"(%arg54, %arg55) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%784) : (tensor<f32>) -> ()
    }) : (tensor<3x2xf32>, tensor<f32>) -> tensor<f32>
    %362 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %363 = "stablehlo.divide"(%361, %362) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %364 = "stablehlo.add"(%357, %363) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %365 = "stablehlo.sine"(%154) : (tensor<6xf32>) -> tensor<6xf32>
    %366 = "stablehlo.cosine"(%154) : (tensor<6xf32>) -> tensor<6xf32>
    %367 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %368 = "stablehlo.reduce"(%365, %367) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg52: tensor<f32>, %arg53: tensor<f32>):
      %783 = "stablehlo.add"(%arg52, %arg53) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%783) : (tensor<f32>) -> ()
    }) : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
    %369 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %370 = "stablehlo.divide"(%368, %369) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %371 = "stablehlo.add"(%364, %370) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %372 = "stablehlo.sine"(%156) : (tensor<8xf32>) -> tensor<8xf32>
    %373 = "stablehlo.cosine"(%156) : (tensor<8xf32>) -> tensor<8xf32>
    %374 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %375 = "stablehlo.reduce"(%372, %374) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg50: tensor<f32>, %arg51: tensor<f32>):
      %782 = "stablehlo.add"(%arg50, %arg51) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%782) : (tensor<f32>) -> ()
    }) : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %376 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %377 = "stablehlo.divide"(%375, %376) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %378 = "stablehlo.add"(%371, %377) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %379 = "stablehlo.sine"(%164) : (tensor<f32>) -> tensor<f32>
    %380 = "stablehlo.cosine"(%164) : (tensor<f32>) -> tensor<f32>
    %381 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %382 = "stablehlo.reduce"(%379, %381) <{dimensions = array<i64>}> ({
    ^bb0(%arg48: tensor<f32>, %arg49: tensor<f32>):
      %781 = "stablehlo.add"(%arg48, %arg49) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%781) : (tensor<f32>) -> ()
    }) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %383 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %384 = "stablehlo.divide"(%382, %383) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %385 = "stablehlo.add"(%378, %384) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %386 = "stablehlo.sine"(%182) : (tensor<6xf32>) -> tensor<6xf32>
    %387 = "stablehlo.cosine"(%182) : (tensor<6xf32>) -> tensor<6xf32>
    %388 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %389 = "stablehlo.reduce"(%386, %388) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg46: tensor<f32>, %arg47: tensor<f32>):
      %780 = "stablehlo.add"(%arg46, %arg47) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%780) : (tensor<f32>) -> ()
    }) : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
    %390 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %391 = "stablehlo.divide"(%389, %390) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %392 = "stablehlo.add"(%385, %391) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %393 = "stablehlo.sine"(%203) : (tensor<8xf32>) -> tensor<8xf32>
    %394 = "stablehlo.cosine"(%203) : (tensor<8xf32>) -> tensor<8xf32>
    %395 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %396 = "stablehlo.reduce"(%393, %395) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg44: tensor<f32>, %arg45: tensor<f32>):
      %779 = "stablehlo.add"(%arg44, %arg45) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%779) : (tensor<f32>) -> ()
    }) : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %397 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %398 = "stablehlo.divide"(%396, %397) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %399 = "stablehlo.add"(%392, %398) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %400 = "stablehlo.sine"(%205#0) : (tensor<6xf32>) -> tensor<6xf32>
    %401 = "stablehlo.cosine"(%205#0) : (tensor<6xf32>) -> tensor<6xf32>
    %402 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %403 = "stablehlo.reduce"(%400, %402) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg42: tensor<f32>, %arg43: tensor<f32>):
      %778 = "stablehlo.add"(%arg42, %arg43) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%778) : (tensor<f32>) -> ()
    }) : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
    %404 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %405 = "stablehlo.divide"(%403, %404) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %406 = "stablehlo.add"(%399, %405) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %407 = "stablehlo.sine"(%207) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %408 = "stablehlo.cosine"(%207) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %409 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %410 = "stablehlo.reduce"(%407, %409) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg40: tensor<f32>, %arg41: tensor<f32>):
      %777 = "stablehlo.add"(%arg40, %arg41) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%777) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %411 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %412 = "stablehlo.divide"(%410, %411) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %413 = "stablehlo.add"(%406, %412) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %414 = "stablehlo.sine"(%209) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %415 = "stablehlo.cosine"(%209) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %416 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %417 = "stablehlo.reduce"(%414, %416) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg38: tensor<f32>, %arg39: tensor<f32>):
      %776 = "stablehlo.add"(%arg38, %arg39) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%776) : (tensor<f32>) -> ()
    }) : (tensor<2x8xf32>, tensor<f32>) -> tensor<f32>
    %418 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %419 = "stablehlo.divide"(%417, %418) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %420 = "stablehlo.add"(%413, %419) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %421 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %422 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %423 = "stablehlo.divide"(%421, %422) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %424 = "stablehlo.broadcast_in_dim"(%423) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x8xf32>
    %425 = "stablehlo.multiply"(%424, %415) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    %426 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %427 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %428 = "stablehlo.divide"(%426, %427) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %429 = "stablehlo.broadcast_in_dim"(%428) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %430 = "stablehlo.multiply"(%429, %408) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %431 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %432 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %433 = "stablehlo.divide"(%431, %432) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %434 = "stablehlo.broadcast_in_dim"(%433) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6xf32>
    %435 = "stablehlo.multiply"(%434, %401) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %436 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %437 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %438 = "stablehlo.divide"(%436, %437) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %439 = "stablehlo.broadcast_in_dim"(%438) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
    %440 = "stablehlo.multiply"(%439, %394) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %441 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %442 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %443 = "stablehlo.divide"(%441, %442) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %444 = "stablehlo.broadcast_in_dim"(%443) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6xf32>
    %445 = "stablehlo.multiply"(%444, %387) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %446 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %447 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %448 = "stablehlo.divide"(%446, %447) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %449 = "stablehlo.multiply"(%448, %380) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %450 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %451 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %452 = "stablehlo.divide"(%450, %451) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %453 = "stablehlo.broadcast_in_dim"(%452) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
    %454 = "stablehlo.multiply"(%453, %373) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %455 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %456 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %457 = "stablehlo.divide"(%455, %456) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %458 = "stablehlo.broadcast_in_dim"(%457) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6xf32>
    %459 = "stablehlo.multiply"(%458, %366) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %460 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %461 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %462 = "stablehlo.divide"(%460, %461) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %463 = "stablehlo.broadcast_in_dim"(%462) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x2xf32>
    %464 = "stablehlo.multiply"(%463, %359) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %465 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %466 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %467 = "stablehlo.divide"(%465, %466) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %468 = "stablehlo.broadcast_in_dim"(%467) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6xf32>
    %469 = "stablehlo.multiply"(%468, %352) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %470 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %471 = "stablehlo.constant"() <{value = dense<1.920000e+02> : tensor<f32>}> : () -> tensor<f32>
    %472 = "stablehlo.divide"(%470, %471) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %473 = "stablehlo.broadcast_in_dim"(%472) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x8x8xf32>
    %474 = "stablehlo.multiply"(%473, %345) : (tensor<3x8x8xf32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
    %475 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %476 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %477 = "stablehlo.divide"(%475, %476) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %478 = "stablehlo.multiply"(%477, %338) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %479 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %480 = "stablehlo.constant"() <{value = dense<6.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %481 = "stablehlo.divide"(%479, %480) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %482 = "stablehlo.broadcast_in_dim"(%481) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8x8xf32>
    %483 = "stablehlo.multiply"(%482, %331) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %484 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %485 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %486 = "stablehlo.divide"(%484, %485) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %487 = "stablehlo.broadcast_in_dim"(%486) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %488 = "stablehlo.multiply"(%487, %324) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %489 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %490 = "stablehlo.constant"() <{value = dense<2.880000e+02> : tensor<f32>}> : () -> tensor<f32>
    %491 = "stablehlo.divide"(%489, %490) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %492 = "stablehlo.broadcast_in_dim"(%491) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x6x8xf32>
    %493 = "stablehlo.multiply"(%492, %317) : (tensor<6x6x8xf32>, tensor<6x6x8xf32>) -> tensor<6x6x8xf32>
    %494 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %495 = "stablehlo.constant"() <{value = dense<9.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %496 = "stablehlo.divide"(%494, %495) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %497 = "stablehlo.broadcast_in_dim"(%496) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x8xf32>
    %498 = "stablehlo.multiply"(%497, %310) : (tensor<12x8xf32>, tensor<12x8xf32>) -> tensor<12x8xf32>
    %499 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %500 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %501 = "stablehlo.divide"(%499, %500) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %502 = "stablehlo.broadcast_in_dim"(%501) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %503 = "stablehlo.multiply"(%502, %303) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %504 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %505 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %506 = "stablehlo.divide"(%504, %505) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %507 = "stablehlo.broadcast_in_dim"(%506) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x12xf32>
    %508 = "stablehlo.multiply"(%507, %296) : (tensor<4x12xf32>, tensor<4x12xf32>) -> tensor<4x12xf32>
    %509 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %510 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %511 = "stablehlo.divide"(%509, %510) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %512 = "stablehlo.broadcast_in_dim"(%511) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %513 = "stablehlo.multiply"(%512, %289) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %514 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %515 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %516 = "stablehlo.divide"(%514, %515) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %517 = "stablehlo.broadcast_in_dim"(%516) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %518 = "stablehlo.multiply"(%517, %282) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %519 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %520 = "stablehlo.constant"() <{value = dense<6.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %521 = "stablehlo.divide"(%519, %520) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %522 = "stablehlo.broadcast_in_dim"(%521) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8x8xf32>
    %523 = "stablehlo.multiply"(%522, %275) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %524 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %525 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %526 = "stablehlo.divide"(%524, %525) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %527 = "stablehlo.broadcast_in_dim"(%526) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %528 = "stablehlo.multiply"(%527, %268) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %529 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %530 = "stablehlo.constant"() <{value = dense<7.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %531 = "stablehlo.divide"(%529, %530) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %532 = "stablehlo.broadcast_in_dim"(%531) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<9x8xf32>
    %533 = "stablehlo.multiply"(%532, %261) : (tensor<9x8xf32>, tensor<9x8xf32>) -> tensor<9x8xf32>
    %534 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %535 = "stablehlo.constant"() <{value = dense<1.000000e+01> : tensor<f32>}> : () -> tensor<f32>
    %536 = "stablehlo.divide"(%534, %535) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %537 = "stablehlo.broadcast_in_dim"(%536) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x5xf32>
    %538 = "stablehlo.multiply"(%537, %254) : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
    %539 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %540 = "stablehlo.constant"() <{value = dense<1.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %541 = "stablehlo.divide"(%539, %540) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %542 = "stablehlo.broadcast_in_dim"(%541) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x3xf32>
    %543 = "stablehlo.multiply"(%542, %247) : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x3xf32>
    %544 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %545 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %546 = "stablehlo.divide"(%544, %545) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %547 = "stablehlo.broadcast_in_dim"(%546) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %548 = "stablehlo.multiply"(%547, %240) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %549 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %550 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %551 = "stablehlo.divide"(%549, %550) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %552 = "stablehlo.broadcast_in_dim"(%551) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %553 = "stablehlo.multiply"(%552, %233) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %554 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %555 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %556 = "stablehlo.divide"(%554, %555) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %557 = "stablehlo.broadcast_in_dim"(%556) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x3xf32>
    %558 = "stablehlo.multiply"(%557, %226) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %559 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %560 = "stablehlo.constant"() <{value = dense<2.240000e+02> : tensor<f32>}> : () -> tensor<f32>
    %561 = "stablehlo.divide"(%559, %560) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %562 = "stablehlo.broadcast_in_dim"(%561) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x14xf32>
    %563 = "stablehlo.multiply"(%562, %219) : (tensor<16x14xf32>, tensor<16x14xf32>) -> tensor<16x14xf32>
    %564 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %565 = "stablehlo.constant"() <{value = dense<9.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %566 = "stablehlo.divide"(%564, %565) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %567 = "stablehlo.broadcast_in_dim"(%566) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<14x7xf32>
    %568 = "stablehlo.multiply"(%567, %211) : (tensor<14x7xf32>, tensor<14x7xf32>) -> tensor<14x7xf32>
    %569 = "stablehlo.dot_general"(%425, %208) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x8xf32>, tensor<2x6xf32>) -> tensor<8x6xf32>
    %570 = "stablehlo.transpose"(%569) <{permutation = array<i64: 1, 0>}> : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %571:2 = "stablehlo.optimization_barrier"(%arg24, %430) : (tensor<6x8xf32>, tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>)
    %572 = "stablehlo.sine"(%571#0) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %573 = "stablehlo.cosine"(%571#0) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %574 = "stablehlo.cosine"(%572) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %575 = "stablehlo.multiply"(%571#1, %574) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %576 = "stablehlo.multiply"(%575, %573) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %577 = "stablehlo.add"(%570, %576) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %578 = "func.call"(%205#1, %205#2, %205#3, %435) <{callee = @_var_0}> : (tensor<6x8xf32>, tensor<f32>, tensor<i1>, tensor<6xf32>) -> tensor<6x8xf32>
    %579 = "stablehlo.add"(%577, %578) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %580 = "stablehlo.divide"(%440, %198) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %581 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %582 = "stablehlo.broadcast_in_dim"(%581) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
    %583 = "stablehlo.select"(%201, %582, %580) : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %584 = "stablehlo.select"(%201, %580, %582) : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %585 = "stablehlo.negate"(%583) : (tensor<8xf32>) -> tensor<8xf32>
    %586 = "stablehlo.add"(%584, %585) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %587 = "stablehlo.broadcast_in_dim"(%586) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<6x8xf32>
    %588 = "stablehlo.multiply"(%587, %195) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %589 = "stablehlo.add"(%579, %588) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %590 = "stablehlo.broadcast_in_dim"(%445) <{broadcast_dimensions = array<i64: 1>}> : (tensor<6xf32>) -> tensor<1x6xf32>
    %591 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %592 = "stablehlo.pad"(%590, %591) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<1x6xf32>, tensor<f32>) -> tensor<2x6xf32>
    %593 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %594 = "stablehlo.pad"(%590, %593) <{edge_padding_high = array<i64: 1, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<1x6xf32>, tensor<f32>) -> tensor<2x6xf32>
    %595 = "stablehlo.add"(%592, %594) : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
    %596 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %597 = "stablehlo.pad"(%595, %596) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 2, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
    %598 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %599 = "stablehlo.pad"(%595, %598) <{edge_padding_high = array<i64: 2, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
    %600 = "stablehlo.add"(%597, %599) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %601 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %602 = "stablehlo.pad"(%600, %601) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 4, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<4x6xf32>, tensor<f32>) -> tensor<8x6xf32>
    %603 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %604 = "stablehlo.pad"(%600, %603) <{edge_padding_high = array<i64: 4, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<4x6xf32>, tensor<f32>) -> tensor<8x6xf32>
    %605 = "stablehlo.add"(%602, %604) : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %606 = "stablehlo.transpose"(%605) <{permutation = array<i64: 1, 0>}> : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %607 = "stablehlo.add"(%589, %606) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %608 = "stablehlo.divide"(%449, %170) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %609 = "stablehlo.broadcast_in_dim"(%608) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %610 = "stablehlo.multiply"(%609, %168) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %611 = "stablehlo.add"(%607, %610) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %612 = "stablehlo.divide"(%454, %162) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %613 = "stablehlo.broadcast_in_dim"(%612) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<6x8xf32>
    %614 = "stablehlo.multiply"(%613, %160) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %615 = "stablehlo.add"(%611, %614) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %616 = "stablehlo.broadcast_in_dim"(%459) <{broadcast_dimensions = array<i64: 1>}> : (tensor<6xf32>) -> tensor<1x6xf32>
    %617 = "stablehlo.multiply"(%151, %616) : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<1x6xf32>
    %618 = "stablehlo.multiply"(%616, %152) : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<1x6xf32>
    %619 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %620 = "stablehlo.pad"(%617, %619) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<1x6xf32>, tensor<f32>) -> tensor<2x6xf32>
    %621 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %622 = "stablehlo.pad"(%618, %621) <{edge_padding_high = array<i64: 1, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<1x6xf32>, tensor<f32>) -> tensor<2x6xf32>
    %623 = "stablehlo.add"(%620, %622) : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
    %624 = "stablehlo.multiply"(%148, %623) : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
    %625 = "stablehlo.multiply"(%623, %149) : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
    %626 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %627 = "stablehlo.pad"(%624, %626) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 2, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
    %628 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %629 = "stablehlo.pad"(%625, %628) <{edge_padding_high = array<i64: 2, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
    %630 = "stablehlo.add"(%627, %629) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %631 = "stablehlo.multiply"(%145, %630) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %632 = "stablehlo.multiply"(%630, %146) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %633 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %634 = "stablehlo.pad"(%631, %633) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 4, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<4x6xf32>, tensor<f32>) -> tensor<8x6xf32>
    %635 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %636 = "stablehlo.pad"(%632, %635) <{edge_padding_high = array<i64: 4, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<4x6xf32>, tensor<f32>) -> tensor<8x6xf32>
    %637 = "stablehlo.add"(%634, %636) : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %638 = "stablehlo.transpose"(%637) <{permutation = array<i64: 1, 0>}> : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %639 = "stablehlo.add"(%615, %638) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %640 = "stablehlo.dot_general"(%464, %140) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3x2xf32>, tensor<3x2x8xf32>) -> tensor<3x2x8xf32>
    %641 = "stablehlo.transpose"(%640) <{permutation = array<i64: 2, 0, 1>}> : (tensor<3x2x8xf32>) -> tensor<8x3x2xf32>
    %642 = "stablehlo.dot_general"(%464, %141) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [1, 2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3x2xf32>, tensor<8x3x2xf32>) -> tensor<3x2x8xf32>
    %643 = "stablehlo.reshape"(%641) : (tensor<8x3x2xf32>) -> tensor<6x8xf32>
    %644 = "stablehlo.add"(%639, %643) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %645 = "stablehlo.reshape"(%642) : (tensor<3x2x8xf32>) -> tensor<6x8xf32>
    %646 = "stablehlo.add"(%644, %645) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %647 = "stablehlo.dot_general"(%469, %137) <{dot_dimension_numbers = #stablehlo.dot<>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<6xf32>, tensor<8xf32>) -> tensor<6x8xf32>
    %648 = "stablehlo.transpose"(%647) <{permutation = array<i64: 1, 0>}> : (tensor<6x8xf32>) -> tensor<8x6xf32>
    %649 = "stablehlo.dot_general"(%469, %138) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<6xf32>, tensor<8x6xf32>) -> tensor<8xf32>
    %650 = "stablehlo.transpose"(%648) <{permutation = array<i64: 1, 0>}> : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %651 = "stablehlo.add"(%646, %650) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %652 = "stablehlo.broadcast_in_dim"(%649) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
    %653 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %654 = "stablehlo.pad"(%652, %653) <{edge_padding_high = array<i64: 3, 0>, edge_padding_low = array<i64: 2, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<1x8xf32>, tensor<f32>) -> tensor<6x8xf32>
    %655 = "stablehlo.add"(%651, %654) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %656 = "stablehlo.dot_general"(%474, %130) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3x8x8xf32>, tensor<3x2x8xf32>) -> tensor<3x8x2xf32>
    %657 = "stablehlo.transpose"(%656) <{permutation = array<i64: 0, 2, 1>}> : (tensor<3x8x2xf32>) -> tensor<3x2x8xf32>
    %658 = "stablehlo.dot_general"(%474, %134) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3x8x8xf32>, tensor<3x2x8xf32>) -> tensor<3x8x2xf32>
    %659 = "stablehlo.transpose"(%658) <{permutation = array<i64: 0, 2, 1>}> : (tensor<3x8x2xf32>) -> tensor<3x2x8xf32>
    %660 = "stablehlo.reshape"(%657) : (tensor<3x2x8xf32>) -> tensor<6x8xf32>
    %661 = "stablehlo.add"(%655, %660) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %662 = "stablehlo.reshape"(%659) : (tensor<3x2x8xf32>) -> tensor<6x8xf32>
    %663 = "stablehlo.add"(%661, %662) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %664 = "stablehlo.constant"() <{value = dense<2.000000e-02> : tensor<f32>}> : () -> tensor<f32>
    %665 = "stablehlo.multiply"(%478, %664) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %666 = "stablehlo.dot_general"(%665, %125) <{dot_dimension_numbers = #stablehlo.dot<>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<f32>, tensor<48xf32>) -> tensor<48xf32>
    %667 = "stablehlo.dot_general"(%665, %126) <{dot_dimension_numbers = #stablehlo.dot<>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<f32>, tensor<48xf32>) -> tensor<48xf32>
    %668 = "stablehlo.reshape"(%666) : (tensor<48xf32>) -> tensor<6x8xf32>
    %669 = "stablehlo.add"(%663, %668) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %670 = "stablehlo.reshape"(%667) : (tensor<48xf32>) -> tensor<6x8xf32>
    %671 = "stablehlo.add"(%669, %670) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %672 = "stablehlo.broadcast_in_dim"(%120) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<8x1xf32>) -> tensor<8x8xf32>
    %673 = "stablehlo.multiply"(%672, %483) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %674 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %675 = "stablehlo.reduce"(%673, %674) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg36: tensor<f32>, %arg37: tensor<f32>):
      %775 = "stablehlo.add"(%arg36, %arg37) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%775) : (tensor<f32>) -> ()
    }) : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
    %676 = "stablehlo.reshape"(%675) : (tensor<8xf32>) -> tensor<1x8xf32>
    %677 = "stablehlo.broadcast_in_dim"(%121) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<8x8xf32>
    %678 = "stablehlo.multiply"(%483, %677) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %679 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %680 = "stablehlo.reduce"(%678, %679) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg34: tensor<f32>, %arg35: tensor<f32>):
      %774 = "stablehlo.add"(%arg34, %arg35) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%774) : (tensor<f32>) -> ()
    }) : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
    %681 = "stablehlo.reshape"(%680) : (tensor<8xf32>) -> tensor<8x1xf32>
    %682 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %683 = "stablehlo.reduce"(%676, %682) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg32: tensor<f32>, %arg33: tensor<f32>):
      %773 = "stablehlo.add"(%arg32, %arg33) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%773) : (tensor<f32>) -> ()
    }) : (tensor<1x8xf32>, tensor<f32>) -> tensor<8xf32>
    %684 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %685 = "stablehlo.reduce"(%681, %684) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg30: tensor<f32>, %arg31: tensor<f32>):
      %772 = "stablehlo.add"(%arg30, %arg31) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%772) : (tensor<f32>) -> ()
    }) : (tensor<8x1xf32>, tensor<f32>) -> tensor<8xf32>
    %686 = "stablehlo.broadcast_in_dim"(%683) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
    %687 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %688 = "stablehlo.pad"(%686, %687) <{edge_padding_high = array<i64: 4, 0>, edge_padding_low = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<1x8xf32>, tensor<f32>) -> tensor<6x8xf32>
    %689 = "stablehlo.add"(%671, %688) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %690 = "stablehlo.broadcast_in_dim"(%685) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
    %691 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %692 = "stablehlo.pad"(%690, %691) <{edge_padding_high = array<i64: 5, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<1x8xf32>, tensor<f32>) -> tensor<6x8xf32>
    %693 = "stablehlo.add"(%689, %692) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %694 = "stablehlo.dot_general"(%488, %arg26) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %695 = "stablehlo.dot_general"(%694, %113) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x6xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
    %696 = "stablehlo.add"(%693, %695) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %697 = "stablehlo.transpose"(%493) <{permutation = array<i64: 2, 1, 0>}> : (tensor<6x6x8xf32>) -> tensor<8x6x6xf32>
    %698 = "stablehlo.dot_general"(%697, %arg24) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x6x6xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
    %699 = "stablehlo.transpose"(%698) <{permutation = array<i64: 1, 0>}> : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %700 = "stablehlo.add"(%696, %699) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %701 = "stablehlo.dot_general"(%697, %arg24) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x6x6xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
    %702 = "stablehlo.transpose"(%701) <{permutation = array<i64: 1, 0>}> : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %703 = "stablehlo.add"(%700, %702) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %704 = "stablehlo.reshape"(%498) : (tensor<12x8xf32>) -> tensor<2x6x1x8xf32>
    %705 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %706 = "stablehlo.reduce"(%704, %705) <{dimensions = array<i64: 0, 2>}> ({
    ^bb0(%arg28: tensor<f32>, %arg29: tensor<f32>):
      %771 = "stablehlo.add"(%arg28, %arg29) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%771) : (tensor<f32>) -> ()
    }) : (tensor<2x6x1x8xf32>, tensor<f32>) -> tensor<6x8xf32>
    %707 = "stablehlo.add"(%703, %706) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %708 = "func.call"(%503) <{callee = @_roll_static_2}> : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %709 = "stablehlo.add"(%707, %708) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %710 = "stablehlo.reshape"(%508) : (tensor<4x12xf32>) -> tensor<8x3x2xf32>
    %711 = "stablehlo.transpose"(%710) <{permutation = array<i64: 1, 2, 0>}> : (tensor<8x3x2xf32>) -> tensor<3x2x8xf32>
    %712 = "stablehlo.reshape"(%711) : (tensor<3x2x8xf32>) -> tensor<6x8xf32>
    %713 = "stablehlo.add"(%709, %712) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %714 = "stablehlo.broadcast_in_dim"(%97) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<6x8xf32>
    %715 = "stablehlo.multiply"(%513, %714) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %716 = "stablehlo.add"(%713, %715) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %717 = "func.call"(%518) <{callee = @_flip_3}> : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %718 = "stablehlo.add"(%716, %717) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %719 = "stablehlo.dot_general"(%523, %93) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x8xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %720 = "stablehlo.transpose"(%719) <{permutation = array<i64: 1, 0>}> : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %721 = "stablehlo.add"(%718, %720) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %722 = "stablehlo.dot_general"(%523, %arg24) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
    %723 = "stablehlo.transpose"(%722) <{permutation = array<i64: 1, 0>}> : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %724 = "stablehlo.add"(%721, %723) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %725 = "stablehlo.broadcast_in_dim"(%90) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<6x8xf32>
    %726 = "stablehlo.multiply"(%528, %725) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %727 = "stablehlo.add"(%724, %726) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %728 = "stablehlo.slice"(%533) <{limit_indices = array<i64: 6, 8>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<9x8xf32>) -> tensor<6x8xf32>
    %729 = "stablehlo.slice"(%533) <{limit_indices = array<i64: 8, 8>, start_indices = array<i64: 6, 0>, strides = array<i64: 1, 1>}> : (tensor<9x8xf32>) -> tensor<2x8xf32>
    %730 = "stablehlo.slice"(%533) <{limit_indices = array<i64: 9, 8>, start_indices = array<i64: 8, 0>, strides = array<i64: 1, 1>}> : (tensor<9x8xf32>) -> tensor<1x8xf32>
    %731 = "stablehlo.add"(%727, %728) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %732 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %733 = "stablehlo.broadcast_in_dim"(%732) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x8xf32>
    %734 = "stablehlo.multiply"(%729, %733) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    %735 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %736 = "stablehlo.pad"(%734, %735) <{edge_padding_high = array<i64: 4, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<2x8xf32>, tensor<f32>) -> tensor<6x8xf32>
    %737 = "stablehlo.add"(%731, %736) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %738 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %739 = "stablehlo.pad"(%538, %738) <{edge_padding_high = array<i64: 2, 1>, edge_padding_low = array<i64: 1, 2>, interior_padding = array<i64: 1, 0>}> : (tensor<2x5xf32>, tensor<f32>) -> tensor<6x8xf32>
    %740 = "stablehlo.add"(%737, %739) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %741 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %742 = "stablehlo.pad"(%543, %741) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 0, 1>, interior_padding = array<i64: 0, 2>}> : (tensor<6x3xf32>, tensor<f32>) -> tensor<6x8xf32>
    %743 = "stablehlo.add"(%740, %742) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %744 = "stablehlo.reverse"(%548) <{dimensions = array<i64: 0>}> : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %745 = "stablehlo.add"(%743, %744) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %746 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %747 = "stablehlo.broadcast_in_dim"(%746) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x3xf32>
    %748 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %749 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
    %750 = "stablehlo.dynamic_update_slice"(%553, %747, %748, %749) : (tensor<6x8xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<6x8xf32>
    %751 = "stablehlo.add"(%745, %750) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %752 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %753 = "stablehlo.broadcast_in_dim"(%752) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %754 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %755 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %756 = "stablehlo.dynamic_update_slice"(%753, %558, %754, %755) : (tensor<6x8xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<6x8xf32>
    %757 = "stablehlo.add"(%751, %756) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %758 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %759 = "stablehlo.pad"(%563, %758) <{edge_padding_high = array<i64: 0, 3>, edge_padding_low = array<i64: 0, -2>, interior_padding = array<i64: 0, 0>}> : (tensor<16x14xf32>, tensor<f32>) -> tensor<16x15xf32>
    %760 = "stablehlo.slice"(%759) <{limit_indices = array<i64: 16, 15>, start_indices = array<i64: 0, 0>, strides = array<i64: 3, 2>}> : (tensor<16x15xf32>) -> tensor<6x8xf32>
    %761 = "stablehlo.add"(%757, %760) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %762 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %763 = "stablehlo.pad"(%568, %762) <{edge_padding_high = array<i64: -2, 0>, edge_padding_low = array<i64: -1, 1>, interior_padding = array<i64: 0, 0>}> : (tensor<14x7xf32>, tensor<f32>) -> tensor<11x8xf32>
    %764 = "stablehlo.slice"(%763) <{limit_indices = array<i64: 11, 8>, start_indices = array<i64: 0, 0>, strides = array<i64: 2, 1>}> : (tensor<11x8xf32>) -> tensor<6x8xf32>
    %765 = "stablehlo.add"(%761, %764) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %766 = "stablehlo.broadcast_in_dim"(%arg27) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %767 = "stablehlo.multiply"(%766, %765) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %768 = "stablehlo.subtract"(%arg24, %767) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %769 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %770 = "stablehlo.add"(%arg25, %769) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "func.return"(%768, %770, %420) : (tensor<6x8xf32>, tensor<i32>, tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<6x8xf32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "_flip", sym_visibility = "private"}> ({
  ^bb0(%arg23: tensor<6x8xf32>):
    %66 = "stablehlo.reverse"(%arg23) <{dimensions = array<i64: 0, 1>}> : (tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%66) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<6x8xf32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "_roll_static", sym_visibility = "private"}> ({
  ^bb0(%arg22: tensor<6x8xf32>):
    %63 = "stablehlo.slice"(%arg22) <{limit_indices = array<i64: 6, 8>, start_indices = array<i64: 0, 5>, strides = array<i64: 1, 1>}> : (tensor<6x8xf32>) -> tensor<6x3xf32>
    %64 = "stablehlo.slice"(%arg22) <{limit_indices = array<i64: 6, 5>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<6x8xf32>) -> tensor<6x5xf32>
    %65 = "stablehlo.concatenate"(%63, %64) <{dimension = 1 : i64}> : (tensor<6x3xf32>, tensor<6x5xf32>) -> tensor<6x8xf32>
    "func.return"(%65) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<6x8xf32>, tensor<i32>) -> (tensor<6xf32>, tensor<6x8xf32>, tensor<f32>, tensor<i1>), res_attrs = [{}, {}, {}, {}], sym_name = "_var", sym_visibility = "private"}> ({
  ^bb0(%arg16: tensor<6x8xf32>, %arg17: tensor<i32>):
    %38 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %39 = "stablehlo.reduce"(%arg16, %38) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg20: tensor<f32>, %arg21: tensor<f32>):
      %62 = "stablehlo.add"(%arg20, %arg21) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%62) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<6xf32>
    %40 = "stablehlo.broadcast_in_dim"(%39) <{broadcast_dimensions = array<i64: 0>}> : (tensor<6xf32>) -> tensor<6x1xf32>
    %41 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %42 = "stablehlo.broadcast_in_dim"(%41) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x1xf32>
    %43 = "stablehlo.divide"(%40, %42) : (tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x1xf32>
    %44 = "stablehlo.broadcast_in_dim"(%43) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<6x1xf32>) -> tensor<6x8xf32>
    %45 = "stablehlo.subtract"(%arg16, %44) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %46 = "chlo.square"(%45) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %47 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %48 = "stablehlo.broadcast_in_dim"(%47) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %49 = "stablehlo.multiply"(%48, %45) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %50 = "stablehlo.convert"(%arg17) : (tensor<i32>) -> tensor<f32>
    %51 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %52 = "stablehlo.subtract"(%51, %50) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %53 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %54 = "stablehlo.reduce"(%46, %53) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg18: tensor<f32>, %arg19: tensor<f32>):
      %61 = "stablehlo.add"(%arg18, %arg19) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%61) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<6xf32>
    %55 = "stablehlo.broadcast_in_dim"(%52) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6xf32>
    %56 = "stablehlo.divide"(%54, %55) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %57 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %58 = "stablehlo.compare"(%52, %57) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %59 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %60 = "func.call"(%58, %56, %59) <{callee = @_where}> : (tensor<i1>, tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
    "func.return"(%60, %49, %52, %58) : (tensor<6xf32>, tensor<6x8xf32>, tensor<f32>, tensor<i1>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<i1>, tensor<6xf32>, tensor<f32>) -> tensor<6xf32>, res_attrs = [{}], sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg13: tensor<i1>, %arg14: tensor<6xf32>, %arg15: tensor<f32>):
    %35 = "stablehlo.convert"(%arg15) : (tensor<f32>) -> tensor<f32>
    %36 = "stablehlo.broadcast_in_dim"(%35) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6xf32>
    %37 = "stablehlo.select"(%arg13, %arg14, %36) : (tensor<i1>, tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    "func.return"(%37) : (tensor<6xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<2xi32>) -> tensor<2x6xf32>, res_attrs = [{}], sym_name = "_one_hot", sym_visibility = "private"}> ({
  ^bb0(%arg12: tensor<2xi32>):
    %29 = "stablehlo.broadcast_in_dim"(%arg12) <{broadcast_dimensions = array<i64: 0>}> : (tensor<2xi32>) -> tensor<2x1xi32>
    %30 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<1x6xi32>
    %31 = "stablehlo.broadcast_in_dim"(%29) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x1xi32>) -> tensor<2x6xi32>
    %32 = "stablehlo.broadcast_in_dim"(%30) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x6xi32>) -> tensor<2x6xi32>
    %33 = "stablehlo.compare"(%31, %32) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x6xi32>, tensor<2x6xi32>) -> tensor<2x6xi1>
    %34 = "stablehlo.convert"(%33) : (tensor<2x6xi1>) -> tensor<2x6xf32>
    "func.return"(%34) : (tensor<2x6xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}, {}], function_type = (tensor<6x8xf32>, tensor<f32>, tensor<i1>, tensor<6xf32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "_var_0", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<6x8xf32>, %arg5: tensor<f32>, %arg6: tensor<i1>, %arg7: tensor<6xf32>):
    %11 = "func.call"(%arg6, %arg7) <{callee = @_where_1}> : (tensor<i1>, tensor<6xf32>) -> tensor<6xf32>
    %12 = "stablehlo.broadcast_in_dim"(%arg5) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6xf32>
    %13 = "stablehlo.divide"(%11, %12) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %14 = "stablehlo.broadcast_in_dim"(%13) <{broadcast_dimensions = array<i64: 0>}> : (tensor<6xf32>) -> tensor<6x8xf32>
    %15 = "stablehlo.multiply"(%14, %arg4) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %16 = "stablehlo.negate"(%15) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %17 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %18 = "stablehlo.reduce"(%16, %17) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>):
      %28 = "stablehlo.add"(%arg10, %arg11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%28) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<6xf32>
    %19 = "stablehlo.reshape"(%18) : (tensor<6xf32>) -> tensor<6x1xf32>
    %20 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %21 = "stablehlo.broadcast_in_dim"(%20) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x1xf32>
    %22 = "stablehlo.divide"(%19, %21) : (tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x1xf32>
    %23 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %24 = "stablehlo.reduce"(%22, %23) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
      %27 = "stablehlo.add"(%arg8, %arg9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%27) : (tensor<f32>) -> ()
    }) : (tensor<6x1xf32>, tensor<f32>) -> tensor<6xf32>
    %25 = "stablehlo.broadcast_in_dim"(%24) <{broadcast_dimensions = array<i64: 0>}> : (tensor<6xf32>) -> tensor<6x8xf32>
    %26 = "stablehlo.add"(%15, %25) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%26) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<i1>, tensor<6xf32>) -> tensor<6xf32>, res_attrs = [{}], sym_name = "_where_1", sym_visibility = "private"}> ({
  ^bb0(%arg2: tensor<i1>, %arg3: tensor<6xf32>):
    %8 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6xf32>
    %10 = "stablehlo.select"(%arg2, %arg3, %9) : (tensor<i1>, tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    "func.return"(%10) : (tensor<6xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<6x8xf32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "_roll_static_2", sym_visibility = "private"}> ({
  ^bb0(%arg1: tensor<6x8xf32>):
    %1 = "stablehlo.slice"(%arg1) <{limit_indices = array<i64: 6, 3>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<6x8xf32>) -> tensor<6x3xf32>
    %2 = "stablehlo.slice"(%arg1) <{limit_indices = array<i64: 6, 8>, start_indices = array<i64: 0, 3>, strides = array<i64: 1, 1>}> : (tensor<6x8xf32>) -> tensor<6x5xf32>
    %3 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.pad"(%2, %3) <{edge_padding_high = array<i64: 0, 3>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x8xf32>
    %5 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.pad"(%1, %5) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 0, 5>, interior_padding = array<i64: 0, 0>}> : (tensor<6x3xf32>, tensor<f32>) -> tensor<6x8xf32>
    %7 = "stablehlo.add"(%4, %6) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%7) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<6x8xf32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "_flip_3", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<6x8xf32>):
    %0 = "stablehlo.reverse"(%arg0) <{dimensions = array<i64: 0, 1>}> : (tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%0) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
