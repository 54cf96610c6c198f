"builtin.module"() <{sym_name = "jit_step"}> ({
  "func.func"() <{arg_attrs = [{}, {}, {}, {}, {}], function_type = (tensor<12x4xf32>, tensor<i32>, tensor<4x6xf32>, tensor<4x3xi32>, tensor<f32>) -> (tensor<12x4xf32>, tensor<i32>, tensor<f32>), res_attrs = [{jax.result_info = "result[0]['arg0']"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg50: tensor<12x4xf32>, %arg51: tensor<i32>, %arg52: tensor<4x6xf32>, %arg53: tensor<4x3xi32>, %arg54: tensor<f32>):
    %188 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
    %189 = "stablehlo.broadcast_in_dim"(%188) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %190 = "stablehlo.subtract"(%arg53, %189) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %191 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
    %192 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %193 = "stablehlo.broadcast_in_dim"(%192) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %194 = "stablehlo.compare"(%arg53, %193) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %195 = "stablehlo.constant"() <{value = dense<12> : tensor<i32>}> : () -> tensor<i32>
    %196 = "stablehlo.broadcast_in_dim"(%195) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %197 = "stablehlo.add"(%arg53, %196) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %198 = "stablehlo.select"(%194, %197, %arg53) : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %199 = "stablehlo.broadcast_in_dim"(%198) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x3xi32>) -> tensor<4x3x1xi32>
    %200 = "stablehlo.gather"(%arg50, %199) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<12x4xf32>, tensor<4x3x1xi32>) -> tensor<4x3x4xf32>
    %201 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %202 = "stablehlo.broadcast_in_dim"(%201) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %203 = "stablehlo.compare"(%190, %202) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %204 = "stablehlo.constant"() <{value = dense<12> : tensor<i32>}> : () -> tensor<i32>
    %205 = "stablehlo.broadcast_in_dim"(%204) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %206 = "stablehlo.add"(%190, %205) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %207 = "stablehlo.select"(%203, %206, %190) : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %208 = "stablehlo.broadcast_in_dim"(%207) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x3xi32>) -> tensor<4x3x1xi32>
    %209 = "stablehlo.gather"(%arg50, %208) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<12x4xf32>, tensor<4x3x1xi32>) -> tensor<4x3x4xf32>
    %210 = "stablehlo.slice"(%191) <{limit_indices = array<i64: 3>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<4xi32>) -> tensor<3xi32>
    %211 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %212 = "stablehlo.broadcast_in_dim"(%211) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %213 = "stablehlo.compare"(%arg53, %212) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %214 = "stablehlo.constant"() <{value = dense<12> : tensor<i32>}> : () -> tensor<i32>
    %215 = "stablehlo.broadcast_in_dim"(%214) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %216 = "stablehlo.add"(%arg53, %215) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %217 = "stablehlo.select"(%213, %216, %arg53) : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %218 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %219 = "stablehlo.broadcast_in_dim"(%218) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<3xi32>
    %220 = "stablehlo.compare"(%210, %219) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %221 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
    %222 = "stablehlo.broadcast_in_dim"(%221) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<3xi32>
    %223 = "stablehlo.add"(%210, %222) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %224 = "stablehlo.select"(%220, %223, %210) : (tensor<3xi1>, tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %225 = "stablehlo.broadcast_in_dim"(%224) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xi32>) -> tensor<4x3xi32>
    %226 = "stablehlo.broadcast_in_dim"(%217) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x3xi32>) -> tensor<4x3x1xi32>
    %227 = "stablehlo.broadcast_in_dim"(%225) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x3xi32>) -> tensor<4x3x1xi32>
    %228 = "stablehlo.concatenate"(%226, %227) <{dimension = 2 : i64}> : (tensor<4x3x1xi32>, tensor<4x3x1xi32>) -> tensor<4x3x2xi32>
    %229 = "stablehlo.gather"(%arg50, %228) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<12x4xf32>, tensor<4x3x2xi32>) -> tensor<4x3xf32>
    %230 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %231 = "stablehlo.broadcast_in_dim"(%230) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %232 = "stablehlo.compare"(%arg53, %231) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %233 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
    %234 = "stablehlo.broadcast_in_dim"(%233) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %235 = "stablehlo.add"(%arg53, %234) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %236 = "stablehlo.select"(%232, %235, %arg53) : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %237 = "stablehlo.broadcast_in_dim"(%236) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x3xi32>) -> tensor<4x3x1xi32>
    %238 = "stablehlo.gather"(%arg50, %237) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 12, 1>}> : (tensor<12x4xf32>, tensor<4x3x1xi32>) -> tensor<12x4x3xf32>
    %239:2 = "func.call"(%arg50, %arg53) <{callee = @_take}> : (tensor<12x4xf32>, tensor<4x3xi32>) -> (tensor<12x4x3xf32>, tensor<4x3x1xi32>)
    %240:2 = "func.call"(%arg50, %190) <{callee = @_take_0}> : (tensor<12x4xf32>, tensor<4x3xi32>) -> (tensor<4x3x4xf32>, tensor<4x3x1xi32>)
    %241 = "stablehlo.slice"(%arg53) <{limit_indices = array<i64: 4, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x3xi32>) -> tensor<4x1xi32>
    %242 = "stablehlo.reshape"(%241) : (tensor<4x1xi32>) -> tensor<4xi32>
    %243 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %244 = "stablehlo.broadcast_in_dim"(%243) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %245 = "stablehlo.compare"(%242, %244) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %246 = "stablehlo.constant"() <{value = dense<12> : tensor<i32>}> : () -> tensor<i32>
    %247 = "stablehlo.broadcast_in_dim"(%246) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %248 = "stablehlo.add"(%242, %247) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %249 = "stablehlo.select"(%245, %248, %242) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %250 = "stablehlo.broadcast_in_dim"(%249) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xi32>) -> tensor<4x1xi32>
    %251 = "stablehlo.constant"() <{value = dense<11> : tensor<1xi32>}> : () -> tensor<1xi32>
    %252 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %253 = "stablehlo.broadcast_in_dim"(%252) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x1xi32>
    %254 = "stablehlo.compare"(%250, %253) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %255 = "stablehlo.broadcast_in_dim"(%251) <{broadcast_dimensions = array<i64: 1>}> : (tensor<1xi32>) -> tensor<1x1xi32>
    %256 = "stablehlo.broadcast_in_dim"(%255) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xi32>) -> tensor<4x1xi32>
    %257 = "stablehlo.compare"(%250, %256) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %258 = "stablehlo.and"(%254, %257) : (tensor<4x1xi1>, tensor<4x1xi1>) -> tensor<4x1xi1>
    %259 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %260 = "stablehlo.reduce"(%258, %259) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg101: tensor<i1>, %arg102: tensor<i1>):
      %578 = "stablehlo.and"(%arg101, %arg102) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%578) : (tensor<i1>) -> ()
    }) : (tensor<4x1xi1>, tensor<i1>) -> tensor<4xi1>
    %261 = "stablehlo.gather"(%arg50, %250) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<12x4xf32>, tensor<4x1xi32>) -> tensor<4x4xf32>
    %262 = "stablehlo.broadcast_in_dim"(%260) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xi1>) -> tensor<4x4xi1>
    %263 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %264 = "stablehlo.broadcast_in_dim"(%263) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x4xf32>
    %265 = "stablehlo.select"(%262, %261, %264) : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %266 = "stablehlo.slice"(%arg50) <{limit_indices = array<i64: 4, 4>, start_indices = array<i64: 3, 0>, strides = array<i64: 1, 1>}> : (tensor<12x4xf32>) -> tensor<1x4xf32>
    %267 = "stablehlo.reshape"(%266) : (tensor<1x4xf32>) -> tensor<4xf32>
    %268 = "stablehlo.transpose"(%arg53) <{permutation = array<i64: 1, 0>}> : (tensor<4x3xi32>) -> tensor<3x4xi32>
    %269 = "stablehlo.constant"() <{value = dense<12> : tensor<i32>}> : () -> tensor<i32>
    %270 = "func.call"(%268, %269) <{callee = @remainder_1}> : (tensor<3x4xi32>, tensor<i32>) -> tensor<3x4xi32>
    %271:2 = "func.call"(%arg50, %270) <{callee = @take_along_axis}> : (tensor<12x4xf32>, tensor<3x4xi32>) -> (tensor<3x4xf32>, tensor<3x4x1xi32>)
    %272 = "stablehlo.slice"(%arg50) <{limit_indices = array<i64: 4, 4>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<12x4xf32>) -> tensor<4x4xf32>
    %273 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
    %274 = "func.call"(%arg53, %273) <{callee = @remainder_3}> : (tensor<4x3xi32>, tensor<i32>) -> tensor<4x3xi32>
    %275:2 = "func.call"(%272, %274) <{callee = @take_along_axis_4}> : (tensor<4x4xf32>, tensor<4x3xi32>) -> (tensor<4x3xf32>, tensor<4x3x1xi32>)
    %276 = "stablehlo.slice"(%arg53) <{limit_indices = array<i64: 4, 2>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<4x3xi32>) -> tensor<4x1xi32>
    %277 = "stablehlo.reshape"(%276) : (tensor<4x1xi32>) -> tensor<4xi32>
    %278 = "stablehlo.slice"(%arg52) <{limit_indices = array<i64: 4, 4>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<4x4xf32>
    %279 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %280 = "stablehlo.broadcast_in_dim"(%279) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %281 = "stablehlo.compare"(%277, %280) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %282 = "stablehlo.constant"() <{value = dense<12> : tensor<i32>}> : () -> tensor<i32>
    %283 = "stablehlo.broadcast_in_dim"(%282) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %284 = "stablehlo.add"(%277, %283) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %285 = "stablehlo.select"(%281, %284, %277) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %286 = "stablehlo.broadcast_in_dim"(%285) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xi32>) -> tensor<4x1xi32>
    %287 = "stablehlo.scatter"(%arg50, %286, %278) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg99: tensor<f32>, %arg100: tensor<f32>):
      %577 = "stablehlo.add"(%arg99, %arg100) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%577) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<4x1xi32>, tensor<4x4xf32>) -> tensor<12x4xf32>
    %288 = "stablehlo.slice"(%arg53) <{limit_indices = array<i64: 4, 2>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<4x3xi32>) -> tensor<4x1xi32>
    %289 = "stablehlo.reshape"(%288) : (tensor<4x1xi32>) -> tensor<4xi32>
    %290 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %291 = "stablehlo.broadcast_in_dim"(%290) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %292 = "stablehlo.subtract"(%289, %291) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %293 = "stablehlo.slice"(%arg52) <{limit_indices = array<i64: 1, 4>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<1x4xf32>
    %294 = "stablehlo.reshape"(%293) : (tensor<1x4xf32>) -> tensor<4xf32>
    %295 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %296 = "stablehlo.broadcast_in_dim"(%295) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %297 = "stablehlo.compare"(%292, %296) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %298 = "stablehlo.constant"() <{value = dense<12> : tensor<i32>}> : () -> tensor<i32>
    %299 = "stablehlo.broadcast_in_dim"(%298) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %300 = "stablehlo.add"(%292, %299) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %301 = "stablehlo.select"(%297, %300, %292) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %302 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %303 = "stablehlo.broadcast_in_dim"(%302) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %304 = "stablehlo.compare"(%191, %303) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %305 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
    %306 = "stablehlo.broadcast_in_dim"(%305) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %307 = "stablehlo.add"(%191, %306) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %308 = "stablehlo.select"(%304, %307, %191) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %309 = "stablehlo.broadcast_in_dim"(%301) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xi32>) -> tensor<4x1xi32>
    %310 = "stablehlo.broadcast_in_dim"(%308) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xi32>) -> tensor<4x1xi32>
    %311 = "stablehlo.concatenate"(%309, %310) <{dimension = 1 : i64}> : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
    %312 = "stablehlo.scatter"(%arg50, %311, %294) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg97: tensor<f32>, %arg98: tensor<f32>):
      %576 = "stablehlo.add"(%arg97, %arg98) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%576) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<4x2xi32>, tensor<4xf32>) -> tensor<12x4xf32>
    %313 = "stablehlo.reshape"(%arg50) : (tensor<12x4xf32>) -> tensor<2x6x4xf32>
    %314 = "stablehlo.slice"(%arg53) <{limit_indices = array<i64: 2, 3>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x3xi32>) -> tensor<2x3xi32>
    %315 = "stablehlo.broadcast_in_dim"(%314) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x3xi32>) -> tensor<2x3x1xi32>
    %316 = "stablehlo.constant"() <{value = dense<6> : tensor<i32>}> : () -> tensor<i32>
    %317 = "func.call"(%315, %316) <{callee = @remainder_5}> : (tensor<2x3x1xi32>, tensor<i32>) -> tensor<2x3x1xi32>
    %318:2 = "func.call"(%313, %317) <{callee = @take_along_axis_6}> : (tensor<2x6x4xf32>, tensor<2x3x1xi32>) -> (tensor<2x3x4xf32>, tensor<2x3x1xi32>)
    %319 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %320 = "stablehlo.broadcast_in_dim"(%319) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %321 = "stablehlo.slice"(%arg50) <{limit_indices = array<i64: 12, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<12x4xf32>) -> tensor<12x1xf32>
    %322 = "stablehlo.reshape"(%321) : (tensor<12x1xf32>) -> tensor<12xf32>
    %323 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %324 = "stablehlo.broadcast_in_dim"(%323) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %325 = "stablehlo.scatter"(%320, %324, %322) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>, unique_indices = true}> ({
    ^bb0(%arg95: tensor<f32>, %arg96: tensor<f32>):
      %575 = "stablehlo.add"(%arg95, %arg96) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%575) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<1xi32>, tensor<12xf32>) -> tensor<12x4xf32>
    %326 = "stablehlo.sine"(%200) : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
    %327 = "stablehlo.cosine"(%200) : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
    %328 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %329 = "stablehlo.reduce"(%326, %328) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%arg93: tensor<f32>, %arg94: tensor<f32>):
      %574 = "stablehlo.add"(%arg93, %arg94) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%574) : (tensor<f32>) -> ()
    }) : (tensor<4x3x4xf32>, tensor<f32>) -> tensor<f32>
    %330 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %331 = "stablehlo.divide"(%329, %330) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %332 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %333 = "stablehlo.add"(%332, %331) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %334 = "stablehlo.sine"(%209) : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
    %335 = "stablehlo.cosine"(%209) : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
    %336 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %337 = "stablehlo.reduce"(%334, %336) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%arg91: tensor<f32>, %arg92: tensor<f32>):
      %573 = "stablehlo.add"(%arg91, %arg92) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%573) : (tensor<f32>) -> ()
    }) : (tensor<4x3x4xf32>, tensor<f32>) -> tensor<f32>
    %338 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %339 = "stablehlo.divide"(%337, %338) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %340 = "stablehlo.add"(%333, %339) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %341 = "stablehlo.sine"(%229) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %342 = "stablehlo.cosine"(%229) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %343 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %344 = "stablehlo.reduce"(%341, %343) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg89: tensor<f32>, %arg90: tensor<f32>):
      %572 = "stablehlo.add"(%arg89, %arg90) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%572) : (tensor<f32>) -> ()
    }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<f32>
    %345 = "stablehlo.constant"() <{value = dense<1.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %346 = "stablehlo.divide"(%344, %345) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %347 = "stablehlo.add"(%340, %346) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %348 = "stablehlo.sine"(%238) : (tensor<12x4x3xf32>) -> tensor<12x4x3xf32>
    %349 = "stablehlo.cosine"(%238) : (tensor<12x4x3xf32>) -> tensor<12x4x3xf32>
    %350 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %351 = "stablehlo.reduce"(%348, %350) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%arg87: tensor<f32>, %arg88: tensor<f32>):
      %571 = "stablehlo.add"(%arg87, %arg88) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%571) : (tensor<f32>) -> ()
    }) : (tensor<12x4x3xf32>, tensor<f32>) -> tensor<f32>
    %352 = "stablehlo.constant"() <{value = dense<1.440000e+02> : tensor<f32>}> : () -> tensor<f32>
    %353 = "stablehlo.divide"(%351, %352) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %354 = "stablehlo.add"(%347, %353) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %355 = "stablehlo.sine"(%239#0) : (tensor<12x4x3xf32>) -> tensor<12x4x3xf32>
    %356 = "stablehlo.cosine"(%239#0) : (tensor<12x4x3xf32>) -> tensor<12x4x3xf32>
    %357 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %358 = "stablehlo.reduce"(%355, %357) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%arg85: tensor<f32>, %arg86: tensor<f32>):
      %570 = "stablehlo.add"(%arg85, %arg86) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%570) : (tensor<f32>) -> ()
    }) : (tensor<12x4x3xf32>, tensor<f32>) -> tensor<f32>
    %359 = "stablehlo.constant"() <{value = dense<1.440000e+02> : tensor<f32>}> : () -> tensor<f32>
    %360 = "stablehlo.divide"(%358, %359) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %361 = "stablehlo.add"(%354, %360) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %362 = "stablehlo.sine"(%240#0) : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
    %363 = "stablehlo.cosine"(%240#0) : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
    %364 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %365 = "stablehlo.reduce"(%362, %364) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%arg83: tensor<f32>, %arg84: tensor<f32>):
      %569 = "stablehlo.add"(%arg83, %arg84) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%569) : (tensor<f32>) -> ()
    }) : (tensor<4x3x4xf32>, tensor<f32>) -> tensor<f32>
    %366 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %367 = "stablehlo.divide"(%365, %366) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %368 = "stablehlo.add"(%361, %367) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %369 = "stablehlo.sine"(%265) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %370 = "stablehlo.cosine"(%265) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %371 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %372 = "stablehlo.reduce"(%369, %371) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg81: tensor<f32>, %arg82: tensor<f32>):
      %568 = "stablehlo.add"(%arg81, %arg82) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%568) : (tensor<f32>) -> ()
    }) : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
    %373 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %374 = "stablehlo.divide"(%372, %373) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %375 = "stablehlo.add"(%368, %374) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %376 = "stablehlo.sine"(%267) : (tensor<4xf32>) -> tensor<4xf32>
    %377 = "stablehlo.cosine"(%267) : (tensor<4xf32>) -> tensor<4xf32>
    %378 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %379 = "stablehlo.reduce"(%376, %378) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg79: tensor<f32>, %arg80: tensor<f32>):
      %567 = "stablehlo.add"(%arg79, %arg80) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%567) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %380 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %381 = "stablehlo.divide"(%379, %380) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %382 = "stablehlo.add"(%375, %381) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %383 = "stablehlo.sine"(%271#0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %384 = "stablehlo.cosine"(%271#0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %385 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %386 = "stablehlo.reduce"(%383, %385) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg77: tensor<f32>, %arg78: tensor<f32>):
      %566 = "stablehlo.add"(%arg77, %arg78) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%566) : (tensor<f32>) -> ()
    }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<f32>
    %387 = "stablehlo.constant"() <{value = dense<1.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %388 = "stablehlo.divide"(%386, %387) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %389 = "stablehlo.add"(%382, %388) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %390 = "stablehlo.sine"(%275#0) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %391 = "stablehlo.cosine"(%275#0) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %392 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %393 = "stablehlo.reduce"(%390, %392) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg75: tensor<f32>, %arg76: tensor<f32>):
      %565 = "stablehlo.add"(%arg75, %arg76) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%565) : (tensor<f32>) -> ()
    }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<f32>
    %394 = "stablehlo.constant"() <{value = dense<1.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %395 = "stablehlo.divide"(%393, %394) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %396 = "stablehlo.add"(%389, %395) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %397 = "stablehlo.sine"(%287) : (tensor<12x4xf32>) -> tensor<12x4xf32>
    %398 = "stablehlo.cosine"(%287) : (tensor<12x4xf32>) -> tensor<12x4xf32>
    %399 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %400 = "stablehlo.reduce"(%397, %399) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg73: tensor<f32>, %arg74: tensor<f32>):
      %564 = "stablehlo.add"(%arg73, %arg74) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%564) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<f32>) -> tensor<f32>
    %401 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %402 = "stablehlo.divide"(%400, %401) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %403 = "stablehlo.add"(%396, %402) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %404 = "stablehlo.sine"(%312) : (tensor<12x4xf32>) -> tensor<12x4xf32>
    %405 = "stablehlo.cosine"(%312) : (tensor<12x4xf32>) -> tensor<12x4xf32>
    %406 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %407 = "stablehlo.reduce"(%404, %406) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg71: tensor<f32>, %arg72: tensor<f32>):
      %563 = "stablehlo.add"(%arg71, %arg72) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%563) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<f32>) -> tensor<f32>
    %408 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %409 = "stablehlo.divide"(%407, %408) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %410 = "stablehlo.add"(%403, %409) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %411 = "stablehlo.sine"(%318#0) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %412 = "stablehlo.cosine"(%318#0) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %413 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %414 = "stablehlo.reduce"(%411, %413) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%arg69: tensor<f32>, %arg70: tensor<f32>):
      %562 = "stablehlo.add"(%arg69, %arg70) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%562) : (tensor<f32>) -> ()
    }) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<f32>
    %415 = "stablehlo.constant"() <{value = dense<2.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %416 = "stablehlo.divide"(%414, %415) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %417 = "stablehlo.add"(%410, %416) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %418 = "stablehlo.sine"(%325) : (tensor<12x4xf32>) -> tensor<12x4xf32>
    %419 = "stablehlo.cosine"(%325) : (tensor<12x4xf32>) -> tensor<12x4xf32>
    %420 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %421 = "stablehlo.reduce"(%418, %420) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg67: tensor<f32>, %arg68: tensor<f32>):
      %561 = "stablehlo.add"(%arg67, %arg68) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%561) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<f32>) -> tensor<f32>
    %422 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %423 = "stablehlo.divide"(%421, %422) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %424 = "stablehlo.add"(%417, %423) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %425 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %426 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %427 = "stablehlo.divide"(%425, %426) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %428 = "stablehlo.broadcast_in_dim"(%427) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %429 = "stablehlo.multiply"(%428, %419) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %430 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %431 = "stablehlo.constant"() <{value = dense<2.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %432 = "stablehlo.divide"(%430, %431) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %433 = "stablehlo.broadcast_in_dim"(%432) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x3x4xf32>
    %434 = "stablehlo.multiply"(%433, %412) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %435 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %436 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %437 = "stablehlo.divide"(%435, %436) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %438 = "stablehlo.broadcast_in_dim"(%437) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %439 = "stablehlo.multiply"(%438, %405) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %440 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %441 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %442 = "stablehlo.divide"(%440, %441) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %443 = "stablehlo.broadcast_in_dim"(%442) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %444 = "stablehlo.multiply"(%443, %398) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %445 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %446 = "stablehlo.constant"() <{value = dense<1.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %447 = "stablehlo.divide"(%445, %446) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %448 = "stablehlo.broadcast_in_dim"(%447) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3xf32>
    %449 = "stablehlo.multiply"(%448, %391) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %450 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %451 = "stablehlo.constant"() <{value = dense<1.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %452 = "stablehlo.divide"(%450, %451) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %453 = "stablehlo.broadcast_in_dim"(%452) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x4xf32>
    %454 = "stablehlo.multiply"(%453, %384) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %455 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %456 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %457 = "stablehlo.divide"(%455, %456) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %458 = "stablehlo.broadcast_in_dim"(%457) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %459 = "stablehlo.multiply"(%458, %377) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %460 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %461 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %462 = "stablehlo.divide"(%460, %461) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %463 = "stablehlo.broadcast_in_dim"(%462) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x4xf32>
    %464 = "stablehlo.multiply"(%463, %370) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %465 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %466 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %467 = "stablehlo.divide"(%465, %466) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %468 = "stablehlo.broadcast_in_dim"(%467) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3x4xf32>
    %469 = "stablehlo.multiply"(%468, %363) : (tensor<4x3x4xf32>, tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
    %470 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %471 = "stablehlo.constant"() <{value = dense<1.440000e+02> : tensor<f32>}> : () -> tensor<f32>
    %472 = "stablehlo.divide"(%470, %471) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %473 = "stablehlo.broadcast_in_dim"(%472) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4x3xf32>
    %474 = "stablehlo.multiply"(%473, %356) : (tensor<12x4x3xf32>, tensor<12x4x3xf32>) -> tensor<12x4x3xf32>
    %475 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %476 = "stablehlo.constant"() <{value = dense<1.440000e+02> : tensor<f32>}> : () -> tensor<f32>
    %477 = "stablehlo.divide"(%475, %476) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %478 = "stablehlo.broadcast_in_dim"(%477) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4x3xf32>
    %479 = "stablehlo.multiply"(%478, %349) : (tensor<12x4x3xf32>, tensor<12x4x3xf32>) -> tensor<12x4x3xf32>
    %480 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %481 = "stablehlo.constant"() <{value = dense<1.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %482 = "stablehlo.divide"(%480, %481) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %483 = "stablehlo.broadcast_in_dim"(%482) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3xf32>
    %484 = "stablehlo.multiply"(%483, %342) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %485 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %486 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %487 = "stablehlo.divide"(%485, %486) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %488 = "stablehlo.broadcast_in_dim"(%487) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3x4xf32>
    %489 = "stablehlo.multiply"(%488, %335) : (tensor<4x3x4xf32>, tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
    %490 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %491 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %492 = "stablehlo.divide"(%490, %491) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %493 = "stablehlo.broadcast_in_dim"(%492) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3x4xf32>
    %494 = "stablehlo.multiply"(%493, %327) : (tensor<4x3x4xf32>, tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
    %495 = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
    %496 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %497 = "stablehlo.broadcast_in_dim"(%496) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %498 = "stablehlo.compare"(%324, %497) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %499 = "stablehlo.compare"(%324, %495) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %500 = "stablehlo.and"(%498, %499) : (tensor<1xi1>, tensor<1xi1>) -> tensor<1xi1>
    %501 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %502 = "stablehlo.reduce"(%500, %501) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg65: tensor<i1>, %arg66: tensor<i1>):
      %560 = "stablehlo.and"(%arg65, %arg66) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%560) : (tensor<i1>) -> ()
    }) : (tensor<1xi1>, tensor<i1>) -> tensor<i1>
    %503 = "stablehlo.gather"(%429, %324) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, indices_are_sorted = false, slice_sizes = array<i64: 12, 1>}> : (tensor<12x4xf32>, tensor<1xi32>) -> tensor<12xf32>
    %504 = "stablehlo.broadcast_in_dim"(%502) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<12xi1>
    %505 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %506 = "stablehlo.broadcast_in_dim"(%505) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12xf32>
    %507 = "stablehlo.select"(%504, %503, %506) : (tensor<12xi1>, tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
    %508 = "stablehlo.broadcast_in_dim"(%507) <{broadcast_dimensions = array<i64: 0>}> : (tensor<12xf32>) -> tensor<12x1xf32>
    %509 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %510 = "stablehlo.pad"(%508, %509) <{edge_padding_high = array<i64: 0, 3>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<12x1xf32>, tensor<f32>) -> tensor<12x4xf32>
    %511 = "func.call"(%318#1, %434) <{callee = @take_along_axis_7}> : (tensor<2x3x1xi32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
    %512 = "stablehlo.reshape"(%511) : (tensor<2x6x4xf32>) -> tensor<12x4xf32>
    %513 = "stablehlo.add"(%510, %512) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %514 = "stablehlo.add"(%513, %439) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %515 = "stablehlo.add"(%514, %444) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %516 = "func.call"(%275#1, %449) <{callee = @take_along_axis_8}> : (tensor<4x3x1xi32>, tensor<4x3xf32>) -> tensor<4x4xf32>
    %517 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %518 = "stablehlo.pad"(%516, %517) <{edge_padding_high = array<i64: 8, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<4x4xf32>, tensor<f32>) -> tensor<12x4xf32>
    %519 = "stablehlo.add"(%515, %518) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %520 = "func.call"(%271#1, %454) <{callee = @take_along_axis_9}> : (tensor<3x4x1xi32>, tensor<3x4xf32>) -> tensor<12x4xf32>
    %521 = "stablehlo.add"(%519, %520) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %522 = "stablehlo.broadcast_in_dim"(%459) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<1x4xf32>
    %523 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %524 = "stablehlo.pad"(%522, %523) <{edge_padding_high = array<i64: 8, 0>, edge_padding_low = array<i64: 3, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<1x4xf32>, tensor<f32>) -> tensor<12x4xf32>
    %525 = "stablehlo.add"(%521, %524) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %526 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %527 = "stablehlo.broadcast_in_dim"(%526) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %528 = "stablehlo.scatter"(%527, %250, %464) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg63: tensor<f32>, %arg64: tensor<f32>):
      %559 = "stablehlo.add"(%arg63, %arg64) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%559) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<4x1xi32>, tensor<4x4xf32>) -> tensor<12x4xf32>
    %529 = "stablehlo.add"(%525, %528) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %530 = "func.call"(%240#1, %469) <{callee = @_take_10}> : (tensor<4x3x1xi32>, tensor<4x3x4xf32>) -> tensor<12x4xf32>
    %531 = "stablehlo.add"(%529, %530) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %532 = "func.call"(%239#1, %474) <{callee = @_take_11}> : (tensor<4x3x1xi32>, tensor<12x4x3xf32>) -> tensor<12x4xf32>
    %533 = "stablehlo.add"(%531, %532) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %534 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %535 = "stablehlo.broadcast_in_dim"(%534) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %536 = "stablehlo.scatter"(%535, %237, %479) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg61: tensor<f32>, %arg62: tensor<f32>):
      %558 = "stablehlo.add"(%arg61, %arg62) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%558) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<4x3x1xi32>, tensor<12x4x3xf32>) -> tensor<12x4xf32>
    %537 = "stablehlo.add"(%533, %536) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %538 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %539 = "stablehlo.broadcast_in_dim"(%538) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %540 = "stablehlo.scatter"(%539, %228, %484) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg59: tensor<f32>, %arg60: tensor<f32>):
      %557 = "stablehlo.add"(%arg59, %arg60) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%557) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<4x3x2xi32>, tensor<4x3xf32>) -> tensor<12x4xf32>
    %541 = "stablehlo.add"(%537, %540) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %542 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %543 = "stablehlo.broadcast_in_dim"(%542) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %544 = "stablehlo.scatter"(%543, %208, %489) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg57: tensor<f32>, %arg58: tensor<f32>):
      %556 = "stablehlo.add"(%arg57, %arg58) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%556) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<4x3x1xi32>, tensor<4x3x4xf32>) -> tensor<12x4xf32>
    %545 = "stablehlo.add"(%541, %544) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %546 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %547 = "stablehlo.broadcast_in_dim"(%546) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %548 = "stablehlo.scatter"(%547, %199, %494) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg55: tensor<f32>, %arg56: tensor<f32>):
      %555 = "stablehlo.add"(%arg55, %arg56) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%555) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<4x3x1xi32>, tensor<4x3x4xf32>) -> tensor<12x4xf32>
    %549 = "stablehlo.add"(%545, %548) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %550 = "stablehlo.broadcast_in_dim"(%arg54) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %551 = "stablehlo.multiply"(%550, %549) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %552 = "stablehlo.subtract"(%arg50, %551) : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
    %553 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %554 = "stablehlo.add"(%arg51, %553) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "func.return"(%552, %554, %424) : (tensor<12x4xf32>, tensor<i32>, tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<12x4xf32>, tensor<4x3xi32>) -> (tensor<12x4x3xf32>, tensor<4x3x1xi32>), res_attrs = [{}, {}], sym_name = "_take", sym_visibility = "private"}> ({
  ^bb0(%arg48: tensor<12x4xf32>, %arg49: tensor<4x3xi32>):
    %186 = "stablehlo.broadcast_in_dim"(%arg49) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x3xi32>) -> tensor<4x3x1xi32>
    %187 = "stablehlo.gather"(%arg48, %186) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 12, 1>}> : (tensor<12x4xf32>, tensor<4x3x1xi32>) -> tensor<12x4x3xf32>
    "func.return"(%187, %186) : (tensor<12x4x3xf32>, tensor<4x3x1xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<12x4xf32>, tensor<4x3xi32>) -> (tensor<4x3x4xf32>, tensor<4x3x1xi32>), res_attrs = [{}, {}], sym_name = "_take_0", sym_visibility = "private"}> ({
  ^bb0(%arg46: tensor<12x4xf32>, %arg47: tensor<4x3xi32>):
    %182 = "stablehlo.constant"() <{value = dense<12> : tensor<i32>}> : () -> tensor<i32>
    %183 = "func.call"(%arg47, %182) <{callee = @remainder}> : (tensor<4x3xi32>, tensor<i32>) -> tensor<4x3xi32>
    %184 = "stablehlo.broadcast_in_dim"(%183) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x3xi32>) -> tensor<4x3x1xi32>
    %185 = "stablehlo.gather"(%arg46, %184) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<12x4xf32>, tensor<4x3x1xi32>) -> tensor<4x3x4xf32>
    "func.return"(%185, %184) : (tensor<4x3x4xf32>, tensor<4x3x1xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<4x3xi32>, tensor<i32>) -> tensor<4x3xi32>, res_attrs = [{}], sym_name = "remainder", sym_visibility = "private"}> ({
  ^bb0(%arg44: tensor<4x3xi32>, %arg45: tensor<i32>):
    %162 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %163 = "stablehlo.compare"(%arg45, %162) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %164 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %165 = "func.call"(%163, %164, %arg45) <{callee = @_where}> : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %166 = "stablehlo.broadcast_in_dim"(%165) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %167 = "stablehlo.remainder"(%arg44, %166) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %168 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %169 = "stablehlo.broadcast_in_dim"(%168) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %170 = "stablehlo.compare"(%167, %169) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %171 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %172 = "stablehlo.broadcast_in_dim"(%171) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %173 = "stablehlo.compare"(%167, %172) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %174 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %175 = "stablehlo.compare"(%165, %174) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %176 = "stablehlo.broadcast_in_dim"(%175) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<4x3xi1>
    %177 = "stablehlo.compare"(%173, %176) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4x3xi1>, tensor<4x3xi1>) -> tensor<4x3xi1>
    %178 = "stablehlo.and"(%177, %170) : (tensor<4x3xi1>, tensor<4x3xi1>) -> tensor<4x3xi1>
    %179 = "stablehlo.broadcast_in_dim"(%165) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %180 = "stablehlo.add"(%167, %179) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %181 = "stablehlo.select"(%178, %180, %167) : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    "func.return"(%181) : (tensor<4x3xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>, res_attrs = [{}], sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg41: tensor<i1>, %arg42: tensor<i32>, %arg43: tensor<i32>):
    %161 = "stablehlo.select"(%arg41, %arg42, %arg43) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    "func.return"(%161) : (tensor<i32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<3x4xi32>, tensor<i32>) -> tensor<3x4xi32>, res_attrs = [{}], sym_name = "remainder_1", sym_visibility = "private"}> ({
  ^bb0(%arg39: tensor<3x4xi32>, %arg40: tensor<i32>):
    %140 = "stablehlo.convert"(%arg40) : (tensor<i32>) -> tensor<i32>
    %141 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %142 = "stablehlo.compare"(%140, %141) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %143 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %144 = "func.call"(%142, %143, %140) <{callee = @_where_2}> : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %145 = "stablehlo.broadcast_in_dim"(%144) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<3x4xi32>
    %146 = "stablehlo.remainder"(%arg39, %145) : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %147 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %148 = "stablehlo.broadcast_in_dim"(%147) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<3x4xi32>
    %149 = "stablehlo.compare"(%146, %148) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %150 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %151 = "stablehlo.broadcast_in_dim"(%150) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<3x4xi32>
    %152 = "stablehlo.compare"(%146, %151) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %153 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %154 = "stablehlo.compare"(%144, %153) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %155 = "stablehlo.broadcast_in_dim"(%154) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<3x4xi1>
    %156 = "stablehlo.compare"(%152, %155) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<3x4xi1>, tensor<3x4xi1>) -> tensor<3x4xi1>
    %157 = "stablehlo.and"(%156, %149) : (tensor<3x4xi1>, tensor<3x4xi1>) -> tensor<3x4xi1>
    %158 = "stablehlo.broadcast_in_dim"(%144) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<3x4xi32>
    %159 = "stablehlo.add"(%146, %158) : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %160 = "stablehlo.select"(%157, %159, %146) : (tensor<3x4xi1>, tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    "func.return"(%160) : (tensor<3x4xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>, res_attrs = [{}], sym_name = "_where_2", sym_visibility = "private"}> ({
  ^bb0(%arg36: tensor<i1>, %arg37: tensor<i32>, %arg38: tensor<i32>):
    %139 = "stablehlo.select"(%arg36, %arg37, %arg38) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    "func.return"(%139) : (tensor<i32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<12x4xf32>, tensor<3x4xi32>) -> (tensor<3x4xf32>, tensor<3x4x1xi32>), res_attrs = [{}, {}], sym_name = "take_along_axis", sym_visibility = "private"}> ({
  ^bb0(%arg32: tensor<12x4xf32>, %arg33: tensor<3x4xi32>):
    %116 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %117 = "stablehlo.broadcast_in_dim"(%116) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<3x4xi32>
    %118 = "stablehlo.compare"(%arg33, %117) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %119 = "stablehlo.constant"() <{value = dense<12> : tensor<i32>}> : () -> tensor<i32>
    %120 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<3x4xi32>
    %121 = "stablehlo.add"(%arg33, %120) : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %122 = "stablehlo.select"(%118, %121, %arg33) : (tensor<3x4xi1>, tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %123 = "stablehlo.reshape"(%122) : (tensor<3x4xi32>) -> tensor<3x4x1xi32>
    %124 = "stablehlo.constant"() <{value = dense<11> : tensor<1xi32>}> : () -> tensor<1xi32>
    %125 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %126 = "stablehlo.broadcast_in_dim"(%125) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<3x4x1xi32>
    %127 = "stablehlo.compare"(%123, %126) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<3x4x1xi32>, tensor<3x4x1xi32>) -> tensor<3x4x1xi1>
    %128 = "stablehlo.broadcast_in_dim"(%124) <{broadcast_dimensions = array<i64: 2>}> : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %129 = "stablehlo.broadcast_in_dim"(%128) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x1xi32>) -> tensor<3x4x1xi32>
    %130 = "stablehlo.compare"(%123, %129) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<3x4x1xi32>, tensor<3x4x1xi32>) -> tensor<3x4x1xi1>
    %131 = "stablehlo.and"(%127, %130) : (tensor<3x4x1xi1>, tensor<3x4x1xi1>) -> tensor<3x4x1xi1>
    %132 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %133 = "stablehlo.reduce"(%131, %132) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg34: tensor<i1>, %arg35: tensor<i1>):
      %138 = "stablehlo.and"(%arg34, %arg35) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%138) : (tensor<i1>) -> ()
    }) : (tensor<3x4x1xi1>, tensor<i1>) -> tensor<3x4xi1>
    %134 = "stablehlo.gather"(%arg32, %123) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], operand_batching_dims = [1], start_indices_batching_dims = [1], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<12x4xf32>, tensor<3x4x1xi32>) -> tensor<3x4xf32>
    %135 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %136 = "stablehlo.broadcast_in_dim"(%135) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x4xf32>
    %137 = "stablehlo.select"(%133, %134, %136) : (tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%137, %123) : (tensor<3x4xf32>, tensor<3x4x1xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<4x3xi32>, tensor<i32>) -> tensor<4x3xi32>, res_attrs = [{}], sym_name = "remainder_3", sym_visibility = "private"}> ({
  ^bb0(%arg30: tensor<4x3xi32>, %arg31: tensor<i32>):
    %95 = "stablehlo.convert"(%arg31) : (tensor<i32>) -> tensor<i32>
    %96 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %97 = "stablehlo.compare"(%95, %96) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %98 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %99 = "func.call"(%97, %98, %95) <{callee = @_where_2}> : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %100 = "stablehlo.broadcast_in_dim"(%99) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %101 = "stablehlo.remainder"(%arg30, %100) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %102 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %103 = "stablehlo.broadcast_in_dim"(%102) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %104 = "stablehlo.compare"(%101, %103) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %105 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %106 = "stablehlo.broadcast_in_dim"(%105) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %107 = "stablehlo.compare"(%101, %106) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %108 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %109 = "stablehlo.compare"(%99, %108) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %110 = "stablehlo.broadcast_in_dim"(%109) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<4x3xi1>
    %111 = "stablehlo.compare"(%107, %110) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4x3xi1>, tensor<4x3xi1>) -> tensor<4x3xi1>
    %112 = "stablehlo.and"(%111, %104) : (tensor<4x3xi1>, tensor<4x3xi1>) -> tensor<4x3xi1>
    %113 = "stablehlo.broadcast_in_dim"(%99) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %114 = "stablehlo.add"(%101, %113) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %115 = "stablehlo.select"(%112, %114, %101) : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    "func.return"(%115) : (tensor<4x3xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<4x4xf32>, tensor<4x3xi32>) -> (tensor<4x3xf32>, tensor<4x3x1xi32>), res_attrs = [{}, {}], sym_name = "take_along_axis_4", sym_visibility = "private"}> ({
  ^bb0(%arg26: tensor<4x4xf32>, %arg27: tensor<4x3xi32>):
    %72 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %73 = "stablehlo.broadcast_in_dim"(%72) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %74 = "stablehlo.compare"(%arg27, %73) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %75 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
    %76 = "stablehlo.broadcast_in_dim"(%75) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %77 = "stablehlo.add"(%arg27, %76) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %78 = "stablehlo.select"(%74, %77, %arg27) : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %79 = "stablehlo.reshape"(%78) : (tensor<4x3xi32>) -> tensor<4x3x1xi32>
    %80 = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
    %81 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %82 = "stablehlo.broadcast_in_dim"(%81) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3x1xi32>
    %83 = "stablehlo.compare"(%79, %82) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<4x3x1xi32>, tensor<4x3x1xi32>) -> tensor<4x3x1xi1>
    %84 = "stablehlo.broadcast_in_dim"(%80) <{broadcast_dimensions = array<i64: 2>}> : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %85 = "stablehlo.broadcast_in_dim"(%84) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x1xi32>) -> tensor<4x3x1xi32>
    %86 = "stablehlo.compare"(%79, %85) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<4x3x1xi32>, tensor<4x3x1xi32>) -> tensor<4x3x1xi1>
    %87 = "stablehlo.and"(%83, %86) : (tensor<4x3x1xi1>, tensor<4x3x1xi1>) -> tensor<4x3x1xi1>
    %88 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %89 = "stablehlo.reduce"(%87, %88) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg28: tensor<i1>, %arg29: tensor<i1>):
      %94 = "stablehlo.and"(%arg28, %arg29) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%94) : (tensor<i1>) -> ()
    }) : (tensor<4x3x1xi1>, tensor<i1>) -> tensor<4x3xi1>
    %90 = "stablehlo.gather"(%arg26, %79) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<4x4xf32>, tensor<4x3x1xi32>) -> tensor<4x3xf32>
    %91 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %92 = "stablehlo.broadcast_in_dim"(%91) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3xf32>
    %93 = "stablehlo.select"(%89, %90, %92) : (tensor<4x3xi1>, tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    "func.return"(%93, %79) : (tensor<4x3xf32>, tensor<4x3x1xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<2x3x1xi32>, tensor<i32>) -> tensor<2x3x1xi32>, res_attrs = [{}], sym_name = "remainder_5", sym_visibility = "private"}> ({
  ^bb0(%arg24: tensor<2x3x1xi32>, %arg25: tensor<i32>):
    %51 = "stablehlo.convert"(%arg25) : (tensor<i32>) -> tensor<i32>
    %52 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %53 = "stablehlo.compare"(%51, %52) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %54 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %55 = "func.call"(%53, %54, %51) <{callee = @_where_2}> : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %56 = "stablehlo.broadcast_in_dim"(%55) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x3x1xi32>
    %57 = "stablehlo.remainder"(%arg24, %56) : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi32>
    %58 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %59 = "stablehlo.broadcast_in_dim"(%58) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x3x1xi32>
    %60 = "stablehlo.compare"(%57, %59) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi1>
    %61 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %62 = "stablehlo.broadcast_in_dim"(%61) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x3x1xi32>
    %63 = "stablehlo.compare"(%57, %62) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi1>
    %64 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %65 = "stablehlo.compare"(%55, %64) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %66 = "stablehlo.broadcast_in_dim"(%65) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<2x3x1xi1>
    %67 = "stablehlo.compare"(%63, %66) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<2x3x1xi1>, tensor<2x3x1xi1>) -> tensor<2x3x1xi1>
    %68 = "stablehlo.and"(%67, %60) : (tensor<2x3x1xi1>, tensor<2x3x1xi1>) -> tensor<2x3x1xi1>
    %69 = "stablehlo.broadcast_in_dim"(%55) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x3x1xi32>
    %70 = "stablehlo.add"(%57, %69) : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi32>
    %71 = "stablehlo.select"(%68, %70, %57) : (tensor<2x3x1xi1>, tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi32>
    "func.return"(%71) : (tensor<2x3x1xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<2x6x4xf32>, tensor<2x3x1xi32>) -> (tensor<2x3x4xf32>, tensor<2x3x1xi32>), res_attrs = [{}, {}], sym_name = "take_along_axis_6", sym_visibility = "private"}> ({
  ^bb0(%arg20: tensor<2x6x4xf32>, %arg21: tensor<2x3x1xi32>):
    %28 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %29 = "stablehlo.broadcast_in_dim"(%28) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x3x1xi32>
    %30 = "stablehlo.compare"(%arg21, %29) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi1>
    %31 = "stablehlo.constant"() <{value = dense<6> : tensor<i32>}> : () -> tensor<i32>
    %32 = "stablehlo.broadcast_in_dim"(%31) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x3x1xi32>
    %33 = "stablehlo.add"(%arg21, %32) : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi32>
    %34 = "stablehlo.select"(%30, %33, %arg21) : (tensor<2x3x1xi1>, tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi32>
    %35 = "stablehlo.constant"() <{value = dense<5> : tensor<1xi32>}> : () -> tensor<1xi32>
    %36 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %37 = "stablehlo.broadcast_in_dim"(%36) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x3x1xi32>
    %38 = "stablehlo.compare"(%34, %37) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi1>
    %39 = "stablehlo.broadcast_in_dim"(%35) <{broadcast_dimensions = array<i64: 2>}> : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %40 = "stablehlo.broadcast_in_dim"(%39) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x1xi32>) -> tensor<2x3x1xi32>
    %41 = "stablehlo.compare"(%34, %40) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi1>
    %42 = "stablehlo.and"(%38, %41) : (tensor<2x3x1xi1>, tensor<2x3x1xi1>) -> tensor<2x3x1xi1>
    %43 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %44 = "stablehlo.reduce"(%42, %43) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg22: tensor<i1>, %arg23: tensor<i1>):
      %50 = "stablehlo.and"(%arg22, %arg23) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%50) : (tensor<i1>) -> ()
    }) : (tensor<2x3x1xi1>, tensor<i1>) -> tensor<2x3xi1>
    %45 = "stablehlo.gather"(%arg20, %34) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<2x6x4xf32>, tensor<2x3x1xi32>) -> tensor<2x3x4xf32>
    %46 = "stablehlo.broadcast_in_dim"(%44) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x3xi1>) -> tensor<2x3x4xi1>
    %47 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %48 = "stablehlo.broadcast_in_dim"(%47) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x3x4xf32>
    %49 = "stablehlo.select"(%46, %45, %48) : (tensor<2x3x4xi1>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    "func.return"(%49, %34) : (tensor<2x3x4xf32>, tensor<2x3x1xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<2x3x1xi32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>, res_attrs = [{}], sym_name = "take_along_axis_7", sym_visibility = "private"}> ({
  ^bb0(%arg16: tensor<2x3x1xi32>, %arg17: tensor<2x3x4xf32>):
    %24 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %25 = "stablehlo.broadcast_in_dim"(%24) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x6x4xf32>
    %26 = "stablehlo.scatter"(%25, %arg16, %arg17) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg18: tensor<f32>, %arg19: tensor<f32>):
      %27 = "stablehlo.add"(%arg18, %arg19) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%27) : (tensor<f32>) -> ()
    }) : (tensor<2x6x4xf32>, tensor<2x3x1xi32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
    "func.return"(%26) : (tensor<2x6x4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<4x3x1xi32>, tensor<4x3xf32>) -> tensor<4x4xf32>, res_attrs = [{}], sym_name = "take_along_axis_8", sym_visibility = "private"}> ({
  ^bb0(%arg12: tensor<4x3x1xi32>, %arg13: tensor<4x3xf32>):
    %20 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %21 = "stablehlo.broadcast_in_dim"(%20) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x4xf32>
    %22 = "stablehlo.scatter"(%21, %arg12, %arg13) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg14: tensor<f32>, %arg15: tensor<f32>):
      %23 = "stablehlo.add"(%arg14, %arg15) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%23) : (tensor<f32>) -> ()
    }) : (tensor<4x4xf32>, tensor<4x3x1xi32>, tensor<4x3xf32>) -> tensor<4x4xf32>
    "func.return"(%22) : (tensor<4x4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<3x4x1xi32>, tensor<3x4xf32>) -> tensor<12x4xf32>, res_attrs = [{}], sym_name = "take_along_axis_9", sym_visibility = "private"}> ({
  ^bb0(%arg8: tensor<3x4x1xi32>, %arg9: tensor<3x4xf32>):
    %16 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %17 = "stablehlo.broadcast_in_dim"(%16) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %18 = "stablehlo.scatter"(%17, %arg8, %arg9) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], input_batching_dims = [1], scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>):
      %19 = "stablehlo.add"(%arg10, %arg11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%19) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<3x4x1xi32>, tensor<3x4xf32>) -> tensor<12x4xf32>
    "func.return"(%18) : (tensor<12x4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<4x3x1xi32>, tensor<4x3x4xf32>) -> tensor<12x4xf32>, res_attrs = [{}], sym_name = "_take_10", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<4x3x1xi32>, %arg5: tensor<4x3x4xf32>):
    %12 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %13 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %14 = "stablehlo.scatter"(%13, %arg4, %arg5) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %15 = "stablehlo.add"(%arg6, %arg7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%15) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<4x3x1xi32>, tensor<4x3x4xf32>) -> tensor<12x4xf32>
    "func.return"(%14) : (tensor<12x4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<4x3x1xi32>, tensor<12x4x3xf32>) -> tensor<12x4xf32>, res_attrs = [{}], sym_name = "_take_11", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<4x3x1xi32>, %arg1: tensor<12x4x3xf32>):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<12x4xf32>
    %2 = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
    %3 = "stablehlo.constant"() <{value = dense<2147483647> : tensor<i32>}> : () -> tensor<i32>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %5 = "stablehlo.minimum"(%2, %4) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64: 2>}> : (tensor<1xi32>) -> tensor<4x3x1xi32>
    %7 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %8 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3x1xi32>
    %9 = "stablehlo.clamp"(%8, %arg0, %6) : (tensor<4x3x1xi32>, tensor<4x3x1xi32>, tensor<4x3x1xi32>) -> tensor<4x3x1xi32>
    %10 = "stablehlo.scatter"(%1, %9, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %11 = "stablehlo.add"(%arg2, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%11) : (tensor<f32>) -> ()
    }) : (tensor<12x4xf32>, tensor<4x3x1xi32>, tensor<12x4x3xf32>) -> tensor<12x4xf32>
    "func.return"(%10) : (tensor<12x4xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
