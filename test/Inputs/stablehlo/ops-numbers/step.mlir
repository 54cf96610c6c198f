"builtin.module"() <{sym_name = "jit_step"}> ({
  "func.func"() <{arg_attrs = [{}, {}, {}, {}, {}], function_type = (tensor<6x8xf32>, tensor<i32>, tensor<4x6xf32>, tensor<4x3xi32>, tensor<f32>) -> (tensor<6x8xf32>, tensor<i32>, tensor<f32>), res_attrs = [{jax.result_info = "result[0]['arg0']"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg37: tensor<6x8xf32>, %arg38: tensor<i32>, %arg39: tensor<4x6xf32>, %arg40: tensor<4x3xi32>, %arg41: tensor<f32>):
    %138 = "stablehlo.abs"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %139 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %140 = "stablehlo.broadcast_in_dim"(%139) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %141 = "stablehlo.compare"(%arg37, %140) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %142 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %143 = "stablehlo.broadcast_in_dim"(%142) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %144 = "stablehlo.add"(%138, %143) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %145 = "stablehlo.tanh"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %146 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %147 = "stablehlo.broadcast_in_dim"(%146) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %148 = "stablehlo.subtract"(%147, %145) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %149 = "stablehlo.constant"() <{value = dense<8.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %150 = "stablehlo.broadcast_in_dim"(%149) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %151 = "stablehlo.multiply"(%145, %150) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %152 = "stablehlo.constant"() <{value = dense<1.700000e+00> : tensor<f32>}> : () -> tensor<f32>
    %153 = "stablehlo.broadcast_in_dim"(%152) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %154 = "stablehlo.power"(%144, %153) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %155 = "stablehlo.constant"() <{value = dense<1.700000e+00> : tensor<f32>}> : () -> tensor<f32>
    %156 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %157 = "stablehlo.subtract"(%155, %156) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %158 = "stablehlo.broadcast_in_dim"(%157) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %159 = "stablehlo.power"(%144, %158) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %160 = "stablehlo.constant"() <{value = dense<1.700000e+00> : tensor<f32>}> : () -> tensor<f32>
    %161 = "stablehlo.broadcast_in_dim"(%160) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %162 = "stablehlo.multiply"(%161, %159) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %163 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %164 = "stablehlo.broadcast_in_dim"(%163) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %165 = "stablehlo.power"(%164, %151) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %166 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %167 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %168 = "stablehlo.compare"(%166, %167) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %169 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %170 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %171 = "stablehlo.select"(%168, %170, %169) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %172 = "stablehlo.log"(%171) : (tensor<f32>) -> tensor<f32>
    %173 = "stablehlo.broadcast_in_dim"(%172) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %174 = "stablehlo.multiply"(%173, %165) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %175 = "stablehlo.power"(%144, %151) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %176 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %177 = "stablehlo.broadcast_in_dim"(%176) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %178 = "stablehlo.subtract"(%151, %177) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %179 = "stablehlo.power"(%144, %178) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %180 = "stablehlo.multiply"(%151, %179) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %181 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %182 = "stablehlo.broadcast_in_dim"(%181) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %183 = "stablehlo.compare"(%144, %182) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %184 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %185 = "stablehlo.broadcast_in_dim"(%184) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %186 = "stablehlo.select"(%183, %185, %144) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %187 = "stablehlo.log"(%186) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %188 = "stablehlo.multiply"(%187, %175) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %189 = "stablehlo.slice"(%arg39) <{limit_indices = array<i64: 4, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<4x1xf32>
    %190 = "stablehlo.constant"() <{value = dense<0.699999988> : tensor<f32>}> : () -> tensor<f32>
    %191 = "func.call"(%189, %190) <{callee = @remainder}> : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %192 = "stablehlo.slice"(%arg37) <{limit_indices = array<i64: 1, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<6x8xf32>) -> tensor<1x1xf32>
    %193 = "stablehlo.reshape"(%192) : (tensor<1x1xf32>) -> tensor<1xf32>
    %194 = "stablehlo.broadcast_in_dim"(%193) <{broadcast_dimensions = array<i64: 1>}> : (tensor<1xf32>) -> tensor<1x1xf32>
    %195 = "stablehlo.broadcast_in_dim"(%194) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xf32>) -> tensor<4x1xf32>
    %196 = "stablehlo.add"(%191, %195) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %197 = "stablehlo.floor"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %198 = "stablehlo.multiply"(%197, %arg37) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %199 = "stablehlo.sign"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %200 = "stablehlo.multiply"(%199, %arg37) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %201 = "stablehlo.abs"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %202 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %203 = "stablehlo.broadcast_in_dim"(%202) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %204 = "stablehlo.compare"(%arg37, %203) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %205 = "stablehlo.log_plus_one"(%144) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %206 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %207 = "stablehlo.broadcast_in_dim"(%206) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %208 = "stablehlo.add"(%144, %207) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %209 = "stablehlo.exponential_minus_one"(%151) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %210 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %211 = "stablehlo.broadcast_in_dim"(%210) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %212 = "stablehlo.add"(%209, %211) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %213 = "stablehlo.negate"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %214 = "stablehlo.exponential"(%213) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %215 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %216 = "stablehlo.broadcast_in_dim"(%215) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %217 = "stablehlo.add"(%216, %214) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %218 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %219 = "stablehlo.broadcast_in_dim"(%218) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %220 = "stablehlo.divide"(%219, %217) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %221 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %222 = "stablehlo.broadcast_in_dim"(%221) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %223 = "stablehlo.subtract"(%222, %220) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %224 = "stablehlo.multiply"(%220, %223) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %225:2 = "func.call"(%arg37) <{callee = @softplus}> : (tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>)
    %226 = "chlo.erf_inv"(%151) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %227 = "chlo.square"(%226) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %228 = "stablehlo.exponential"(%227) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %229 = "chlo.erf"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %230 = "chlo.square"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %231 = "stablehlo.negate"(%230) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %232 = "stablehlo.exponential"(%231) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %233 = "chlo.erfc"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %234 = "chlo.square"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %235 = "stablehlo.negate"(%234) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %236 = "stablehlo.exponential"(%235) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %237 = "stablehlo.atan2"(%144, %151) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %238 = "chlo.square"(%144) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %239 = "chlo.square"(%151) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %240 = "stablehlo.add"(%238, %239) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %241 = "stablehlo.divide"(%151, %240) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %242 = "stablehlo.negate"(%144) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %243 = "chlo.square"(%144) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %244 = "chlo.square"(%151) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %245 = "stablehlo.add"(%243, %244) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %246 = "stablehlo.divide"(%242, %245) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %247 = "chlo.sinh"(%151) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %248 = "chlo.cosh"(%151) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %249 = "chlo.cosh"(%151) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %250 = "chlo.sinh"(%151) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %251 = "stablehlo.sine"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %252 = "stablehlo.cosine"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %253 = "stablehlo.cosine"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %254 = "stablehlo.sine"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %255 = "stablehlo.tan"(%151) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %256 = "chlo.square"(%255) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %257 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %258 = "stablehlo.broadcast_in_dim"(%257) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %259 = "stablehlo.add"(%258, %256) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %260 = "stablehlo.ceil"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %261 = "stablehlo.multiply"(%260, %arg37) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %262 = "stablehlo.constant"() <{value = dense<3.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %263 = "stablehlo.broadcast_in_dim"(%262) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %264 = "stablehlo.multiply"(%arg37, %263) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %265 = "func.call"(%264) <{callee = @round}> : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %266 = "stablehlo.multiply"(%265, %arg37) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %267 = "stablehlo.log"(%144) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %268 = "stablehlo.constant"() <{value = dense<-6.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %269 = "stablehlo.constant"() <{value = dense<0.699999988> : tensor<f32>}> : () -> tensor<f32>
    %270 = "stablehlo.broadcast_in_dim"(%268) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %271 = "stablehlo.broadcast_in_dim"(%269) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %272 = "stablehlo.clamp"(%270, %arg37, %271) : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %273 = "stablehlo.constant"() <{value = dense<-6.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %274 = "stablehlo.broadcast_in_dim"(%273) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %275 = "stablehlo.compare"(%arg37, %274) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %276 = "stablehlo.constant"() <{value = dense<0.699999988> : tensor<f32>}> : () -> tensor<f32>
    %277 = "stablehlo.broadcast_in_dim"(%276) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %278 = "stablehlo.compare"(%arg37, %277) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %279 = "stablehlo.and"(%275, %278) : (tensor<6x8xi1>, tensor<6x8xi1>) -> tensor<6x8xi1>
    %280 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<f32>}> : () -> tensor<f32>
    %281 = "stablehlo.reduce"(%arg39, %280) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg126: tensor<f32>, %arg127: tensor<f32>):
      %932 = "stablehlo.minimum"(%arg126, %arg127) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%932) : (tensor<f32>) -> ()
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<f32>
    %282 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %283:3 = "func.call"(%arg37, %281, %282) <{callee = @clip}> : (tensor<6x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>)
    %284 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %285 = "stablehlo.broadcast_in_dim"(%284) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %286 = "stablehlo.divide"(%285, %144) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %287 = "stablehlo.multiply"(%144, %144) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %288 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %289 = "stablehlo.broadcast_in_dim"(%288) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %290 = "stablehlo.divide"(%289, %287) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %291 = "stablehlo.constant"() <{value = dense<3.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %292 = "stablehlo.broadcast_in_dim"(%291) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %293 = "stablehlo.subtract"(%292, %arg37) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %294 = "stablehlo.constant"() <{value = dense<3.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %295 = "stablehlo.broadcast_in_dim"(%294) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %296 = "stablehlo.divide"(%arg37, %295) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %297 = "stablehlo.sqrt"(%144) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %298 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %299 = "stablehlo.broadcast_in_dim"(%298) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %300 = "stablehlo.divide"(%299, %297) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %301 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %302 = "stablehlo.reduce"(%arg40, %301) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg124: tensor<i32>, %arg125: tensor<i32>):
      %931 = "stablehlo.add"(%arg124, %arg125) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%931) : (tensor<i32>) -> ()
    }) : (tensor<4x3xi32>, tensor<i32>) -> tensor<i32>
    %303 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %304 = "stablehlo.compare"(%302, %303) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %305 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %306 = "stablehlo.broadcast_in_dim"(%305) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %307 = "stablehlo.multiply"(%306, %arg37) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %308 = "func.call"(%304, %arg37, %307) <{callee = @_where}> : (tensor<i1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %309 = "stablehlo.is_finite"(%arg37) : (tensor<6x8xf32>) -> tensor<6x8xi1>
    %310 = "stablehlo.constant"() <{value = dense<4.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %311 = "stablehlo.broadcast_in_dim"(%310) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %312 = "stablehlo.compare"(%arg37, %311) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %313 = "stablehlo.not"(%312) : (tensor<6x8xi1>) -> tensor<6x8xi1>
    %314 = "stablehlo.and"(%309, %313) : (tensor<6x8xi1>, tensor<6x8xi1>) -> tensor<6x8xi1>
    %315 = "stablehlo.constant"() <{value = dense<-1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %316 = "stablehlo.broadcast_in_dim"(%315) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %317 = "stablehlo.compare"(%arg37, %316) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %318 = "stablehlo.or"(%314, %317) : (tensor<6x8xi1>, tensor<6x8xi1>) -> tensor<6x8xi1>
    %319 = "stablehlo.constant"() <{value = dense<2.500000e-01> : tensor<f32>}> : () -> tensor<f32>
    %320 = "func.call"(%318, %arg37, %319) <{callee = @_where_0}> : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<f32>) -> tensor<6x8xf32>
    %321 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %322 = "stablehlo.broadcast_in_dim"(%321) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %323 = "stablehlo.compare"(%arg37, %322) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %324 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %325 = "stablehlo.broadcast_in_dim"(%324) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %326 = "stablehlo.compare"(%arg37, %325) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %327 = "stablehlo.xor"(%323, %326) : (tensor<6x8xi1>, tensor<6x8xi1>) -> tensor<6x8xi1>
    %328 = "stablehlo.multiply"(%arg37, %arg37) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %329 = "func.call"(%327, %arg37, %328) <{callee = @_where_1}> : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %330 = "stablehlo.constant"() <{value = dense<3.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %331 = "stablehlo.broadcast_in_dim"(%330) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %332 = "stablehlo.minimum"(%arg37, %331) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %333 = "stablehlo.compare"(%arg37, %332) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %334 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %335 = "stablehlo.broadcast_in_dim"(%334) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %336 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %337 = "stablehlo.broadcast_in_dim"(%336) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %338 = "stablehlo.select"(%333, %335, %337) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %339 = "stablehlo.constant"() <{value = dense<3.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %340 = "stablehlo.broadcast_in_dim"(%339) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %341 = "stablehlo.compare"(%340, %332) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %342 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %343 = "stablehlo.broadcast_in_dim"(%342) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %344 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %345 = "stablehlo.broadcast_in_dim"(%344) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %346 = "stablehlo.select"(%341, %343, %345) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %347 = "stablehlo.divide"(%338, %346) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %348 = "stablehlo.maximum"(%arg37, %151) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %349 = "stablehlo.compare"(%arg37, %348) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %350 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %351 = "stablehlo.broadcast_in_dim"(%350) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %352 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %353 = "stablehlo.broadcast_in_dim"(%352) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %354 = "stablehlo.select"(%349, %351, %353) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %355 = "stablehlo.compare"(%151, %348) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %356 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %357 = "stablehlo.broadcast_in_dim"(%356) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %358 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %359 = "stablehlo.broadcast_in_dim"(%358) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %360 = "stablehlo.select"(%355, %357, %359) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %361 = "stablehlo.divide"(%354, %360) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %362 = "stablehlo.compare"(%151, %348) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %363 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %364 = "stablehlo.broadcast_in_dim"(%363) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %365 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %366 = "stablehlo.broadcast_in_dim"(%365) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %367 = "stablehlo.select"(%362, %364, %366) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %368 = "stablehlo.compare"(%arg37, %348) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %369 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %370 = "stablehlo.broadcast_in_dim"(%369) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %371 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %372 = "stablehlo.broadcast_in_dim"(%371) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %373 = "stablehlo.select"(%368, %370, %372) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %374 = "stablehlo.divide"(%367, %373) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %375 = "stablehlo.constant"() <{value = dense<2.71828175> : tensor<f32>}> : () -> tensor<f32>
    %376 = "stablehlo.broadcast_in_dim"(%375) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %377 = "stablehlo.multiply"(%arg37, %376) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %378 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %379 = "func.call"(%arg40, %378) <{callee = @floor_divide}> : (tensor<4x3xi32>, tensor<i32>) -> tensor<4x3xi32>
    %380 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %381 = "stablehlo.broadcast_in_dim"(%380) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %382 = "stablehlo.multiply"(%379, %381) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %383 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %384 = "func.call"(%arg40, %383) <{callee = @remainder_3}> : (tensor<4x3xi32>, tensor<i32>) -> tensor<4x3xi32>
    %385 = "stablehlo.add"(%382, %384) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %386 = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
    %387 = "stablehlo.broadcast_in_dim"(%386) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %388 = "stablehlo.and"(%arg40, %387) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %389 = "stablehlo.add"(%385, %388) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %390 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %391 = "stablehlo.broadcast_in_dim"(%390) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %392 = "stablehlo.or"(%arg40, %391) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %393 = "stablehlo.add"(%389, %392) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %394 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %395 = "stablehlo.broadcast_in_dim"(%394) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %396 = "stablehlo.xor"(%arg40, %395) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %397 = "stablehlo.add"(%393, %396) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %398 = "stablehlo.negate"(%arg40) : (tensor<4x3xi32>) -> tensor<4x3xi32>
    %399 = "stablehlo.abs"(%398) : (tensor<4x3xi32>) -> tensor<4x3xi32>
    %400 = "stablehlo.add"(%397, %399) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %401 = "stablehlo.sign"(%arg40) : (tensor<4x3xi32>) -> tensor<4x3xi32>
    %402 = "stablehlo.add"(%400, %401) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %403 = "stablehlo.not"(%arg40) : (tensor<4x3xi32>) -> tensor<4x3xi32>
    %404 = "stablehlo.add"(%402, %403) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %405 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %406 = "stablehlo.broadcast_in_dim"(%405) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %407 = "stablehlo.compare"(%arg37, %406) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %408 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %409 = "stablehlo.reduce"(%407, %408) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg122: tensor<i1>, %arg123: tensor<i1>):
      %930 = "stablehlo.or"(%arg122, %arg123) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%930) : (tensor<i1>) -> ()
    }) : (tensor<6x8xi1>, tensor<i1>) -> tensor<8xi1>
    %410 = "stablehlo.constant"() <{value = dense<-2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %411 = "stablehlo.broadcast_in_dim"(%410) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %412 = "stablehlo.compare"(%arg37, %411) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %413 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %414 = "stablehlo.reduce"(%412, %413) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg120: tensor<i1>, %arg121: tensor<i1>):
      %929 = "stablehlo.and"(%arg120, %arg121) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%929) : (tensor<i1>) -> ()
    }) : (tensor<6x8xi1>, tensor<i1>) -> tensor<8xi1>
    %415 = "stablehlo.or"(%409, %414) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
    %416 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %417 = "stablehlo.reduce"(%154, %416) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg118: tensor<f32>, %arg119: tensor<f32>):
      %928 = "stablehlo.add"(%arg118, %arg119) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%928) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %418 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %419 = "stablehlo.divide"(%417, %418) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %420 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %421 = "stablehlo.add"(%420, %419) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %422 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %423 = "stablehlo.reduce"(%165, %422) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg116: tensor<f32>, %arg117: tensor<f32>):
      %927 = "stablehlo.add"(%arg116, %arg117) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%927) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %424 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %425 = "stablehlo.divide"(%423, %424) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %426 = "stablehlo.add"(%421, %425) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %427 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %428 = "stablehlo.reduce"(%175, %427) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg114: tensor<f32>, %arg115: tensor<f32>):
      %926 = "stablehlo.add"(%arg114, %arg115) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%926) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %429 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %430 = "stablehlo.divide"(%428, %429) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %431 = "stablehlo.add"(%426, %430) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %432 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %433 = "stablehlo.reduce"(%196, %432) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg112: tensor<f32>, %arg113: tensor<f32>):
      %925 = "stablehlo.add"(%arg112, %arg113) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%925) : (tensor<f32>) -> ()
    }) : (tensor<4x1xf32>, tensor<f32>) -> tensor<f32>
    %434 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %435 = "stablehlo.divide"(%433, %434) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %436 = "stablehlo.add"(%431, %435) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %437 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %438 = "stablehlo.reduce"(%198, %437) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg110: tensor<f32>, %arg111: tensor<f32>):
      %924 = "stablehlo.add"(%arg110, %arg111) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%924) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %439 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %440 = "stablehlo.divide"(%438, %439) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %441 = "stablehlo.add"(%436, %440) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %442 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %443 = "stablehlo.reduce"(%200, %442) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg108: tensor<f32>, %arg109: tensor<f32>):
      %923 = "stablehlo.add"(%arg108, %arg109) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%923) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %444 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %445 = "stablehlo.divide"(%443, %444) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %446 = "stablehlo.add"(%441, %445) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %447 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %448 = "stablehlo.reduce"(%201, %447) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg106: tensor<f32>, %arg107: tensor<f32>):
      %922 = "stablehlo.add"(%arg106, %arg107) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%922) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %449 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %450 = "stablehlo.divide"(%448, %449) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %451 = "stablehlo.add"(%446, %450) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %452 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %453 = "stablehlo.reduce"(%205, %452) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg104: tensor<f32>, %arg105: tensor<f32>):
      %921 = "stablehlo.add"(%arg104, %arg105) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%921) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %454 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %455 = "stablehlo.divide"(%453, %454) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %456 = "stablehlo.add"(%451, %455) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %457 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %458 = "stablehlo.reduce"(%209, %457) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg102: tensor<f32>, %arg103: tensor<f32>):
      %920 = "stablehlo.add"(%arg102, %arg103) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%920) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %459 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %460 = "stablehlo.divide"(%458, %459) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %461 = "stablehlo.add"(%456, %460) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %462 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %463 = "stablehlo.reduce"(%220, %462) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg100: tensor<f32>, %arg101: tensor<f32>):
      %919 = "stablehlo.add"(%arg100, %arg101) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%919) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %464 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %465 = "stablehlo.divide"(%463, %464) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %466 = "stablehlo.add"(%461, %465) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %467 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %468 = "stablehlo.reduce"(%225#0, %467) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg98: tensor<f32>, %arg99: tensor<f32>):
      %918 = "stablehlo.add"(%arg98, %arg99) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%918) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %469 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %470 = "stablehlo.divide"(%468, %469) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %471 = "stablehlo.add"(%466, %470) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %472 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %473 = "stablehlo.reduce"(%226, %472) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg96: tensor<f32>, %arg97: tensor<f32>):
      %917 = "stablehlo.add"(%arg96, %arg97) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%917) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %474 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %475 = "stablehlo.divide"(%473, %474) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %476 = "stablehlo.add"(%471, %475) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %477 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %478 = "stablehlo.reduce"(%229, %477) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg94: tensor<f32>, %arg95: tensor<f32>):
      %916 = "stablehlo.add"(%arg94, %arg95) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%916) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %479 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %480 = "stablehlo.divide"(%478, %479) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %481 = "stablehlo.add"(%476, %480) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %482 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %483 = "stablehlo.reduce"(%233, %482) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg92: tensor<f32>, %arg93: tensor<f32>):
      %915 = "stablehlo.add"(%arg92, %arg93) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%915) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %484 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %485 = "stablehlo.divide"(%483, %484) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %486 = "stablehlo.add"(%481, %485) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %487 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %488 = "stablehlo.reduce"(%237, %487) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg90: tensor<f32>, %arg91: tensor<f32>):
      %914 = "stablehlo.add"(%arg90, %arg91) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%914) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %489 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %490 = "stablehlo.divide"(%488, %489) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %491 = "stablehlo.add"(%486, %490) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %492 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %493 = "stablehlo.reduce"(%247, %492) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg88: tensor<f32>, %arg89: tensor<f32>):
      %913 = "stablehlo.add"(%arg88, %arg89) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%913) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %494 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %495 = "stablehlo.divide"(%493, %494) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %496 = "stablehlo.add"(%491, %495) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %497 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %498 = "stablehlo.reduce"(%249, %497) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg86: tensor<f32>, %arg87: tensor<f32>):
      %912 = "stablehlo.add"(%arg86, %arg87) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%912) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %499 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %500 = "stablehlo.divide"(%498, %499) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %501 = "stablehlo.add"(%496, %500) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %502 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %503 = "stablehlo.reduce"(%251, %502) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg84: tensor<f32>, %arg85: tensor<f32>):
      %911 = "stablehlo.add"(%arg84, %arg85) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%911) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %504 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %505 = "stablehlo.divide"(%503, %504) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %506 = "stablehlo.add"(%501, %505) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %507 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %508 = "stablehlo.reduce"(%253, %507) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg82: tensor<f32>, %arg83: tensor<f32>):
      %910 = "stablehlo.add"(%arg82, %arg83) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%910) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %509 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %510 = "stablehlo.divide"(%508, %509) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %511 = "stablehlo.add"(%506, %510) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %512 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %513 = "stablehlo.reduce"(%255, %512) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg80: tensor<f32>, %arg81: tensor<f32>):
      %909 = "stablehlo.add"(%arg80, %arg81) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%909) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %514 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %515 = "stablehlo.divide"(%513, %514) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %516 = "stablehlo.add"(%511, %515) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %517 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %518 = "stablehlo.reduce"(%261, %517) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg78: tensor<f32>, %arg79: tensor<f32>):
      %908 = "stablehlo.add"(%arg78, %arg79) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%908) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %519 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %520 = "stablehlo.divide"(%518, %519) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %521 = "stablehlo.add"(%516, %520) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %522 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %523 = "stablehlo.reduce"(%266, %522) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg76: tensor<f32>, %arg77: tensor<f32>):
      %907 = "stablehlo.add"(%arg76, %arg77) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%907) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %524 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %525 = "stablehlo.divide"(%523, %524) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %526 = "stablehlo.add"(%521, %525) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %527 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %528 = "stablehlo.reduce"(%267, %527) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg74: tensor<f32>, %arg75: tensor<f32>):
      %906 = "stablehlo.add"(%arg74, %arg75) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%906) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %529 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %530 = "stablehlo.divide"(%528, %529) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %531 = "stablehlo.add"(%526, %530) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %532 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %533 = "stablehlo.reduce"(%272, %532) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg72: tensor<f32>, %arg73: tensor<f32>):
      %905 = "stablehlo.add"(%arg72, %arg73) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%905) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %534 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %535 = "stablehlo.divide"(%533, %534) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %536 = "stablehlo.add"(%531, %535) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %537 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %538 = "stablehlo.reduce"(%283#0, %537) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg70: tensor<f32>, %arg71: tensor<f32>):
      %904 = "stablehlo.add"(%arg70, %arg71) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%904) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %539 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %540 = "stablehlo.divide"(%538, %539) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %541 = "stablehlo.add"(%536, %540) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %542 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %543 = "stablehlo.reduce"(%286, %542) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg68: tensor<f32>, %arg69: tensor<f32>):
      %903 = "stablehlo.add"(%arg68, %arg69) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%903) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %544 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %545 = "stablehlo.divide"(%543, %544) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %546 = "stablehlo.add"(%541, %545) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %547 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %548 = "stablehlo.reduce"(%293, %547) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg66: tensor<f32>, %arg67: tensor<f32>):
      %902 = "stablehlo.add"(%arg66, %arg67) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%902) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %549 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %550 = "stablehlo.divide"(%548, %549) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %551 = "stablehlo.add"(%546, %550) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %552 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %553 = "stablehlo.reduce"(%296, %552) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg64: tensor<f32>, %arg65: tensor<f32>):
      %901 = "stablehlo.add"(%arg64, %arg65) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%901) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %554 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %555 = "stablehlo.divide"(%553, %554) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %556 = "stablehlo.add"(%551, %555) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %557 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %558 = "stablehlo.reduce"(%297, %557) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg62: tensor<f32>, %arg63: tensor<f32>):
      %900 = "stablehlo.add"(%arg62, %arg63) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%900) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %559 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %560 = "stablehlo.divide"(%558, %559) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %561 = "stablehlo.add"(%556, %560) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %562 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %563 = "stablehlo.reduce"(%308, %562) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg60: tensor<f32>, %arg61: tensor<f32>):
      %899 = "stablehlo.add"(%arg60, %arg61) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%899) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %564 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %565 = "stablehlo.divide"(%563, %564) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %566 = "stablehlo.add"(%561, %565) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %567 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %568 = "stablehlo.reduce"(%320, %567) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg58: tensor<f32>, %arg59: tensor<f32>):
      %898 = "stablehlo.add"(%arg58, %arg59) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%898) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %569 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %570 = "stablehlo.divide"(%568, %569) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %571 = "stablehlo.add"(%566, %570) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %572 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %573 = "stablehlo.reduce"(%329, %572) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg56: tensor<f32>, %arg57: tensor<f32>):
      %897 = "stablehlo.add"(%arg56, %arg57) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%897) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %574 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %575 = "stablehlo.divide"(%573, %574) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %576 = "stablehlo.add"(%571, %575) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %577 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %578 = "stablehlo.reduce"(%332, %577) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg54: tensor<f32>, %arg55: tensor<f32>):
      %896 = "stablehlo.add"(%arg54, %arg55) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%896) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %579 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %580 = "stablehlo.divide"(%578, %579) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %581 = "stablehlo.add"(%576, %580) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %582 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %583 = "stablehlo.reduce"(%348, %582) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg52: tensor<f32>, %arg53: tensor<f32>):
      %895 = "stablehlo.add"(%arg52, %arg53) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%895) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %584 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %585 = "stablehlo.divide"(%583, %584) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %586 = "stablehlo.add"(%581, %585) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %587 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %588 = "stablehlo.reduce"(%377, %587) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg50: tensor<f32>, %arg51: tensor<f32>):
      %894 = "stablehlo.add"(%arg50, %arg51) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%894) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %589 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %590 = "stablehlo.divide"(%588, %589) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %591 = "stablehlo.add"(%586, %590) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %592 = "stablehlo.convert"(%404) : (tensor<4x3xi32>) -> tensor<4x3xf32>
    %593 = "stablehlo.slice"(%arg39) <{limit_indices = array<i64: 4, 3>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<4x3xf32>
    %594 = "stablehlo.multiply"(%592, %593) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %595 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %596 = "stablehlo.reduce"(%594, %595) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg48: tensor<f32>, %arg49: tensor<f32>):
      %893 = "stablehlo.add"(%arg48, %arg49) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%893) : (tensor<f32>) -> ()
    }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<f32>
    %597 = "stablehlo.constant"() <{value = dense<1.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %598 = "stablehlo.divide"(%596, %597) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %599 = "stablehlo.add"(%591, %598) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %600 = "stablehlo.convert"(%415) : (tensor<8xi1>) -> tensor<8xf32>
    %601 = "stablehlo.broadcast_in_dim"(%600) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
    %602 = "stablehlo.broadcast_in_dim"(%601) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<6x8xf32>
    %603 = "stablehlo.multiply"(%602, %arg37) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %604 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %605 = "stablehlo.reduce"(%603, %604) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg46: tensor<f32>, %arg47: tensor<f32>):
      %892 = "stablehlo.add"(%arg46, %arg47) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%892) : (tensor<f32>) -> ()
    }) : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    %606 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %607 = "stablehlo.divide"(%605, %606) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %608 = "stablehlo.add"(%599, %607) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %609 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %610 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %611 = "stablehlo.divide"(%609, %610) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %612 = "stablehlo.broadcast_in_dim"(%611) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %613 = "stablehlo.broadcast_in_dim"(%601) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<6x8xf32>
    %614 = "stablehlo.multiply"(%613, %612) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %615 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %616 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %617 = "stablehlo.divide"(%615, %616) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %618 = "stablehlo.broadcast_in_dim"(%617) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %619 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %620 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %621 = "stablehlo.divide"(%619, %620) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %622 = "stablehlo.broadcast_in_dim"(%621) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %623 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %624 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %625 = "stablehlo.divide"(%623, %624) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %626 = "stablehlo.broadcast_in_dim"(%625) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %627 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %628 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %629 = "stablehlo.divide"(%627, %628) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %630 = "stablehlo.broadcast_in_dim"(%629) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %631 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %632 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %633 = "stablehlo.divide"(%631, %632) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %634 = "stablehlo.broadcast_in_dim"(%633) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %635 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %636 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %637 = "stablehlo.divide"(%635, %636) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %638 = "stablehlo.broadcast_in_dim"(%637) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %639 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %640 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %641 = "stablehlo.divide"(%639, %640) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %642 = "stablehlo.broadcast_in_dim"(%641) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %643 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %644 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %645 = "stablehlo.divide"(%643, %644) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %646 = "stablehlo.broadcast_in_dim"(%645) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %647 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %648 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %649 = "stablehlo.divide"(%647, %648) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %650 = "stablehlo.broadcast_in_dim"(%649) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %651 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %652 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %653 = "stablehlo.divide"(%651, %652) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %654 = "stablehlo.broadcast_in_dim"(%653) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %655 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %656 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %657 = "stablehlo.divide"(%655, %656) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %658 = "stablehlo.broadcast_in_dim"(%657) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %659 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %660 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %661 = "stablehlo.divide"(%659, %660) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %662 = "stablehlo.broadcast_in_dim"(%661) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %663 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %664 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %665 = "stablehlo.divide"(%663, %664) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %666 = "stablehlo.broadcast_in_dim"(%665) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %667 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %668 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %669 = "stablehlo.divide"(%667, %668) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %670 = "stablehlo.broadcast_in_dim"(%669) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %671 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %672 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %673 = "stablehlo.divide"(%671, %672) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %674 = "stablehlo.broadcast_in_dim"(%673) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %675 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %676 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %677 = "stablehlo.divide"(%675, %676) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %678 = "stablehlo.broadcast_in_dim"(%677) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %679 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %680 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %681 = "stablehlo.divide"(%679, %680) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %682 = "stablehlo.broadcast_in_dim"(%681) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %683 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %684 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %685 = "stablehlo.divide"(%683, %684) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %686 = "stablehlo.broadcast_in_dim"(%685) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %687 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %688 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %689 = "stablehlo.divide"(%687, %688) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %690 = "stablehlo.broadcast_in_dim"(%689) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %691 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %692 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %693 = "stablehlo.divide"(%691, %692) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %694 = "stablehlo.broadcast_in_dim"(%693) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %695 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %696 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %697 = "stablehlo.divide"(%695, %696) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %698 = "stablehlo.broadcast_in_dim"(%697) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %699 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %700 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %701 = "stablehlo.divide"(%699, %700) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %702 = "stablehlo.broadcast_in_dim"(%701) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %703 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %704 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %705 = "stablehlo.divide"(%703, %704) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %706 = "stablehlo.broadcast_in_dim"(%705) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %707 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %708 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %709 = "stablehlo.divide"(%707, %708) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %710 = "stablehlo.broadcast_in_dim"(%709) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %711 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %712 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %713 = "stablehlo.divide"(%711, %712) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %714 = "stablehlo.broadcast_in_dim"(%713) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %715 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %716 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %717 = "stablehlo.divide"(%715, %716) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %718 = "stablehlo.broadcast_in_dim"(%717) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %719 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %720 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %721 = "stablehlo.divide"(%719, %720) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %722 = "stablehlo.broadcast_in_dim"(%721) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %723 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %724 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %725 = "stablehlo.divide"(%723, %724) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %726 = "stablehlo.broadcast_in_dim"(%725) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %727 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %728 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %729 = "stablehlo.divide"(%727, %728) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %730 = "stablehlo.broadcast_in_dim"(%729) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %731 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %732 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %733 = "stablehlo.divide"(%731, %732) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %734 = "stablehlo.broadcast_in_dim"(%733) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %735 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %736 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %737 = "stablehlo.divide"(%735, %736) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %738 = "stablehlo.broadcast_in_dim"(%737) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %739 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %740 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %741 = "stablehlo.divide"(%739, %740) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %742 = "stablehlo.broadcast_in_dim"(%741) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x1xf32>
    %743 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %744 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %745 = "stablehlo.divide"(%743, %744) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %746 = "stablehlo.broadcast_in_dim"(%745) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %747 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %748 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %749 = "stablehlo.divide"(%747, %748) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %750 = "stablehlo.broadcast_in_dim"(%749) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %751 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %752 = "stablehlo.constant"() <{value = dense<4.800000e+01> : tensor<f32>}> : () -> tensor<f32>
    %753 = "stablehlo.divide"(%751, %752) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %754 = "stablehlo.broadcast_in_dim"(%753) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %755 = "stablehlo.constant"() <{value = dense<2.71828175> : tensor<f32>}> : () -> tensor<f32>
    %756 = "stablehlo.broadcast_in_dim"(%755) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %757 = "stablehlo.multiply"(%618, %756) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %758 = "stablehlo.add"(%614, %757) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %759 = "stablehlo.multiply"(%622, %374) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %760 = "stablehlo.multiply"(%622, %361) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %761 = "stablehlo.add"(%758, %760) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %762 = "stablehlo.multiply"(%626, %347) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %763 = "stablehlo.add"(%761, %762) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %764:2 = "func.call"(%327, %630) <{callee = @_where_5}> : (tensor<6x8xi1>, tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>)
    %765 = "stablehlo.add"(%763, %764#0) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %766 = "stablehlo.multiply"(%arg37, %764#1) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %767 = "stablehlo.add"(%765, %766) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %768 = "stablehlo.multiply"(%764#1, %arg37) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %769 = "stablehlo.add"(%767, %768) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %770 = "func.call"(%318, %634) <{callee = @_where_6}> : (tensor<6x8xi1>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %771 = "stablehlo.add"(%769, %770) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %772:2 = "func.call"(%304, %638) <{callee = @_where_7}> : (tensor<i1>, tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>)
    %773 = "stablehlo.add"(%771, %772#0) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %774 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %775 = "stablehlo.broadcast_in_dim"(%774) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %776 = "stablehlo.multiply"(%775, %772#1) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %777 = "stablehlo.add"(%773, %776) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %778 = "stablehlo.multiply"(%642, %300) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %779 = "stablehlo.constant"() <{value = dense<3.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %780 = "stablehlo.broadcast_in_dim"(%779) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %781 = "stablehlo.divide"(%646, %780) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %782 = "stablehlo.add"(%777, %781) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %783 = "stablehlo.negate"(%650) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %784 = "stablehlo.add"(%782, %783) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %785 = "stablehlo.multiply"(%654, %290) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %786 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %787 = "stablehlo.broadcast_in_dim"(%786) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %788 = "stablehlo.multiply"(%785, %787) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %789 = "stablehlo.negate"(%788) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %790 = "stablehlo.add"(%778, %789) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %791 = "func.call"(%283#1, %283#2, %658) <{callee = @clip_8}> : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %792 = "stablehlo.add"(%784, %791) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %793 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %794 = "stablehlo.broadcast_in_dim"(%793) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %795 = "stablehlo.select"(%279, %662, %794) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %796 = "stablehlo.add"(%792, %795) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %797 = "stablehlo.divide"(%666, %144) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %798 = "stablehlo.add"(%790, %797) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %799 = "stablehlo.multiply"(%265, %670) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %800 = "stablehlo.add"(%796, %799) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %801 = "stablehlo.multiply"(%260, %674) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %802 = "stablehlo.add"(%800, %801) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %803 = "stablehlo.multiply"(%678, %259) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %804 = "stablehlo.add"(%759, %803) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %805 = "stablehlo.negate"(%682) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %806 = "stablehlo.multiply"(%805, %254) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %807 = "stablehlo.add"(%802, %806) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %808 = "stablehlo.multiply"(%686, %252) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %809 = "stablehlo.add"(%807, %808) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %810 = "stablehlo.multiply"(%690, %250) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %811 = "stablehlo.add"(%804, %810) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %812 = "stablehlo.multiply"(%694, %248) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %813 = "stablehlo.add"(%811, %812) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %814 = "stablehlo.multiply"(%698, %246) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %815 = "stablehlo.add"(%813, %814) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %816 = "stablehlo.multiply"(%698, %241) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %817 = "stablehlo.add"(%798, %816) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %818 = "stablehlo.constant"() <{value = dense<-1.12837923> : tensor<f32>}> : () -> tensor<f32>
    %819 = "stablehlo.broadcast_in_dim"(%818) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %820 = "stablehlo.multiply"(%819, %702) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %821 = "stablehlo.multiply"(%820, %236) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %822 = "stablehlo.add"(%809, %821) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %823 = "stablehlo.constant"() <{value = dense<1.12837923> : tensor<f32>}> : () -> tensor<f32>
    %824 = "stablehlo.broadcast_in_dim"(%823) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %825 = "stablehlo.multiply"(%824, %706) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %826 = "stablehlo.multiply"(%825, %232) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %827 = "stablehlo.add"(%822, %826) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %828 = "stablehlo.constant"() <{value = dense<0.886226952> : tensor<f32>}> : () -> tensor<f32>
    %829 = "stablehlo.broadcast_in_dim"(%828) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %830 = "stablehlo.multiply"(%829, %710) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %831 = "stablehlo.multiply"(%830, %228) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %832 = "stablehlo.add"(%815, %831) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %833 = "func.call"(%225#1, %714) <{callee = @softplus_9}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %834 = "stablehlo.add"(%827, %833) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %835 = "stablehlo.multiply"(%718, %224) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %836 = "stablehlo.add"(%834, %835) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %837 = "stablehlo.multiply"(%722, %212) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %838 = "stablehlo.add"(%832, %837) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %839 = "stablehlo.divide"(%726, %208) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %840 = "stablehlo.add"(%817, %839) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %841 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %842 = "stablehlo.broadcast_in_dim"(%841) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %843 = "stablehlo.select"(%204, %842, %730) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %844 = "stablehlo.select"(%204, %730, %842) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %845 = "stablehlo.add"(%836, %844) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %846 = "stablehlo.negate"(%843) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %847 = "stablehlo.add"(%845, %846) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %848 = "stablehlo.multiply"(%199, %734) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %849 = "stablehlo.add"(%847, %848) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %850 = "stablehlo.multiply"(%197, %738) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %851 = "stablehlo.add"(%849, %850) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %852 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %853 = "stablehlo.reduce"(%742, %852) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg44: tensor<f32>, %arg45: tensor<f32>):
      %891 = "stablehlo.add"(%arg44, %arg45) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%891) : (tensor<f32>) -> ()
    }) : (tensor<4x1xf32>, tensor<f32>) -> tensor<f32>
    %854 = "stablehlo.broadcast_in_dim"(%853) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1xf32>
    %855 = "stablehlo.reshape"(%854) : (tensor<1xf32>) -> tensor<1x1xf32>
    %856 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %857 = "stablehlo.reduce"(%855, %856) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg42: tensor<f32>, %arg43: tensor<f32>):
      %890 = "stablehlo.add"(%arg42, %arg43) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%890) : (tensor<f32>) -> ()
    }) : (tensor<1x1xf32>, tensor<f32>) -> tensor<f32>
    %858 = "stablehlo.broadcast_in_dim"(%857) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1xf32>
    %859 = "stablehlo.broadcast_in_dim"(%858) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1xf32>) -> tensor<1x1xf32>
    %860 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %861 = "stablehlo.pad"(%859, %860) <{edge_padding_high = array<i64: 5, 7>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<1x1xf32>, tensor<f32>) -> tensor<6x8xf32>
    %862 = "stablehlo.add"(%851, %861) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %863 = "stablehlo.multiply"(%746, %188) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %864 = "stablehlo.add"(%838, %863) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %865 = "stablehlo.multiply"(%746, %180) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %866 = "stablehlo.add"(%840, %865) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %867 = "stablehlo.multiply"(%750, %174) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %868 = "stablehlo.add"(%864, %867) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %869 = "stablehlo.multiply"(%754, %162) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %870 = "stablehlo.add"(%866, %869) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %871 = "stablehlo.constant"() <{value = dense<8.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %872 = "stablehlo.broadcast_in_dim"(%871) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %873 = "stablehlo.multiply"(%868, %872) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %874 = "stablehlo.multiply"(%873, %148) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %875 = "stablehlo.add"(%862, %874) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %876 = "stablehlo.multiply"(%874, %145) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %877 = "stablehlo.add"(%875, %876) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %878 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %879 = "stablehlo.broadcast_in_dim"(%878) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %880 = "stablehlo.select"(%141, %879, %870) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %881 = "stablehlo.select"(%141, %870, %879) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %882 = "stablehlo.add"(%877, %881) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %883 = "stablehlo.negate"(%880) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %884 = "stablehlo.add"(%882, %883) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %885 = "stablehlo.broadcast_in_dim"(%arg41) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %886 = "stablehlo.multiply"(%885, %884) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %887 = "stablehlo.subtract"(%arg37, %886) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %888 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %889 = "stablehlo.add"(%arg38, %888) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "func.return"(%887, %889, %608) : (tensor<6x8xf32>, tensor<i32>, tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>, res_attrs = [{}], sym_name = "remainder", sym_visibility = "private"}> ({
  ^bb0(%arg35: tensor<4x1xf32>, %arg36: tensor<f32>):
    %121 = "stablehlo.convert"(%arg36) : (tensor<f32>) -> tensor<f32>
    %122 = "stablehlo.broadcast_in_dim"(%121) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x1xf32>
    %123 = "stablehlo.remainder"(%arg35, %122) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %124 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %125 = "stablehlo.broadcast_in_dim"(%124) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x1xf32>
    %126 = "stablehlo.compare"(%123, %125) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xi1>
    %127 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %128 = "stablehlo.broadcast_in_dim"(%127) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x1xf32>
    %129 = "stablehlo.compare"(%123, %128) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xi1>
    %130 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %131 = "stablehlo.compare"(%121, %130) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %132 = "stablehlo.broadcast_in_dim"(%131) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<4x1xi1>
    %133 = "stablehlo.compare"(%129, %132) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4x1xi1>, tensor<4x1xi1>) -> tensor<4x1xi1>
    %134 = "stablehlo.and"(%133, %126) : (tensor<4x1xi1>, tensor<4x1xi1>) -> tensor<4x1xi1>
    %135 = "stablehlo.broadcast_in_dim"(%121) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x1xf32>
    %136 = "stablehlo.add"(%123, %135) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %137 = "stablehlo.select"(%134, %136, %123) : (tensor<4x1xi1>, tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    "func.return"(%137) : (tensor<4x1xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>), res_attrs = [{}, {}], sym_name = "softplus", sym_visibility = "private"}> ({
  ^bb0(%arg34: tensor<6x8xf32>):
    %93 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %94 = "stablehlo.broadcast_in_dim"(%93) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %95 = "stablehlo.maximum"(%arg34, %94) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %96 = "stablehlo.broadcast_in_dim"(%93) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %97 = "stablehlo.subtract"(%arg34, %96) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %98 = "stablehlo.compare"(%97, %97) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %99 = "stablehlo.broadcast_in_dim"(%93) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %100 = "stablehlo.add"(%arg34, %99) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %101 = "stablehlo.abs"(%97) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %102 = "stablehlo.negate"(%101) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %103 = "stablehlo.exponential"(%102) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %104 = "stablehlo.log_plus_one"(%103) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %105 = "stablehlo.add"(%95, %104) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %106 = "stablehlo.select"(%98, %100, %105) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %107 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<f32>}> : () -> tensor<f32>
    %108 = "stablehlo.broadcast_in_dim"(%107) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %109 = "stablehlo.compare"(%arg34, %108) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %110 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %111 = "stablehlo.broadcast_in_dim"(%110) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %112 = "stablehlo.select"(%109, %111, %arg34) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %113 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<f32>}> : () -> tensor<f32>
    %114 = "stablehlo.broadcast_in_dim"(%113) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %115 = "stablehlo.compare"(%106, %114) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %116 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %117 = "stablehlo.broadcast_in_dim"(%116) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %118 = "stablehlo.select"(%115, %117, %106) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %119 = "stablehlo.subtract"(%112, %118) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %120 = "stablehlo.exponential"(%119) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%106, %120) : (tensor<6x8xf32>, tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<6x8xf32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "round", sym_visibility = "private"}> ({
  ^bb0(%arg33: tensor<6x8xf32>):
    %92 = "stablehlo.round_nearest_even"(%arg33) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%92) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<6x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>), res_attrs = [{}, {}, {}], sym_name = "clip", sym_visibility = "private"}> ({
  ^bb0(%arg30: tensor<6x8xf32>, %arg31: tensor<f32>, %arg32: tensor<f32>):
    %59 = "stablehlo.broadcast_in_dim"(%arg31) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %60 = "stablehlo.maximum"(%59, %arg30) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %61 = "stablehlo.compare"(%arg30, %60) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %62 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %63 = "stablehlo.broadcast_in_dim"(%62) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %64 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %65 = "stablehlo.broadcast_in_dim"(%64) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %66 = "stablehlo.select"(%61, %63, %65) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %67 = "stablehlo.broadcast_in_dim"(%arg31) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %68 = "stablehlo.compare"(%67, %60) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %69 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %70 = "stablehlo.broadcast_in_dim"(%69) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %71 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %72 = "stablehlo.broadcast_in_dim"(%71) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %73 = "stablehlo.select"(%68, %70, %72) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %74 = "stablehlo.divide"(%66, %73) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %75 = "stablehlo.convert"(%arg32) : (tensor<f32>) -> tensor<f32>
    %76 = "stablehlo.broadcast_in_dim"(%75) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %77 = "stablehlo.minimum"(%76, %60) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %78 = "stablehlo.compare"(%60, %77) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %79 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %80 = "stablehlo.broadcast_in_dim"(%79) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %81 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %82 = "stablehlo.broadcast_in_dim"(%81) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %83 = "stablehlo.select"(%78, %80, %82) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %84 = "stablehlo.broadcast_in_dim"(%75) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %85 = "stablehlo.compare"(%84, %77) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xi1>
    %86 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %87 = "stablehlo.broadcast_in_dim"(%86) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %88 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %89 = "stablehlo.broadcast_in_dim"(%88) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %90 = "stablehlo.select"(%85, %87, %89) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %91 = "stablehlo.divide"(%83, %90) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%77, %74, %91) : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<i1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg27: tensor<i1>, %arg28: tensor<6x8xf32>, %arg29: tensor<6x8xf32>):
    %58 = "stablehlo.select"(%arg27, %arg28, %arg29) : (tensor<i1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%58) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<6x8xi1>, tensor<6x8xf32>, tensor<f32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "_where_0", sym_visibility = "private"}> ({
  ^bb0(%arg24: tensor<6x8xi1>, %arg25: tensor<6x8xf32>, %arg26: tensor<f32>):
    %55 = "stablehlo.convert"(%arg26) : (tensor<f32>) -> tensor<f32>
    %56 = "stablehlo.broadcast_in_dim"(%55) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %57 = "stablehlo.select"(%arg24, %arg25, %56) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%57) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "_where_1", sym_visibility = "private"}> ({
  ^bb0(%arg21: tensor<6x8xi1>, %arg22: tensor<6x8xf32>, %arg23: tensor<6x8xf32>):
    %54 = "stablehlo.select"(%arg21, %arg22, %arg23) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%54) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<4x3xi32>, tensor<i32>) -> tensor<4x3xi32>, res_attrs = [{}], sym_name = "floor_divide", sym_visibility = "private"}> ({
  ^bb0(%arg19: tensor<4x3xi32>, %arg20: tensor<i32>):
    %37 = "stablehlo.convert"(%arg20) : (tensor<i32>) -> tensor<i32>
    %38 = "stablehlo.broadcast_in_dim"(%37) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %39 = "stablehlo.divide"(%arg19, %38) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %40 = "stablehlo.sign"(%arg19) : (tensor<4x3xi32>) -> tensor<4x3xi32>
    %41 = "stablehlo.sign"(%37) : (tensor<i32>) -> tensor<i32>
    %42 = "stablehlo.broadcast_in_dim"(%41) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %43 = "stablehlo.compare"(%40, %42) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %44 = "stablehlo.broadcast_in_dim"(%37) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %45 = "stablehlo.remainder"(%arg19, %44) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %46 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %47 = "stablehlo.broadcast_in_dim"(%46) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %48 = "stablehlo.compare"(%45, %47) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %49 = "stablehlo.and"(%43, %48) : (tensor<4x3xi1>, tensor<4x3xi1>) -> tensor<4x3xi1>
    %50 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %51 = "stablehlo.broadcast_in_dim"(%50) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %52 = "stablehlo.subtract"(%39, %51) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %53 = "func.call"(%49, %52, %39) <{callee = @_where_2}> : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    "func.return"(%53) : (tensor<4x3xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>, res_attrs = [{}], sym_name = "_where_2", sym_visibility = "private"}> ({
  ^bb0(%arg16: tensor<4x3xi1>, %arg17: tensor<4x3xi32>, %arg18: tensor<4x3xi32>):
    %36 = "stablehlo.select"(%arg16, %arg17, %arg18) : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    "func.return"(%36) : (tensor<4x3xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<4x3xi32>, tensor<i32>) -> tensor<4x3xi32>, res_attrs = [{}], sym_name = "remainder_3", sym_visibility = "private"}> ({
  ^bb0(%arg14: tensor<4x3xi32>, %arg15: tensor<i32>):
    %15 = "stablehlo.convert"(%arg15) : (tensor<i32>) -> tensor<i32>
    %16 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %17 = "stablehlo.compare"(%15, %16) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %18 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %19 = "func.call"(%17, %18, %15) <{callee = @_where_4}> : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %20 = "stablehlo.broadcast_in_dim"(%19) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %21 = "stablehlo.remainder"(%arg14, %20) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %22 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %23 = "stablehlo.broadcast_in_dim"(%22) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %24 = "stablehlo.compare"(%21, %23) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %25 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %26 = "stablehlo.broadcast_in_dim"(%25) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %27 = "stablehlo.compare"(%21, %26) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %28 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %29 = "stablehlo.compare"(%19, %28) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %30 = "stablehlo.broadcast_in_dim"(%29) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<4x3xi1>
    %31 = "stablehlo.compare"(%27, %30) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4x3xi1>, tensor<4x3xi1>) -> tensor<4x3xi1>
    %32 = "stablehlo.and"(%31, %24) : (tensor<4x3xi1>, tensor<4x3xi1>) -> tensor<4x3xi1>
    %33 = "stablehlo.broadcast_in_dim"(%19) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x3xi32>
    %34 = "stablehlo.add"(%21, %33) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %35 = "stablehlo.select"(%32, %34, %21) : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    "func.return"(%35) : (tensor<4x3xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>, res_attrs = [{}], sym_name = "_where_4", sym_visibility = "private"}> ({
  ^bb0(%arg11: tensor<i1>, %arg12: tensor<i32>, %arg13: tensor<i32>):
    %14 = "stablehlo.select"(%arg11, %arg12, %arg13) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    "func.return"(%14) : (tensor<i32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<6x8xi1>, tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>), res_attrs = [{}, {}], sym_name = "_where_5", sym_visibility = "private"}> ({
  ^bb0(%arg9: tensor<6x8xi1>, %arg10: tensor<6x8xf32>):
    %10 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %12 = "stablehlo.select"(%arg9, %11, %arg10) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %13 = "stablehlo.select"(%arg9, %arg10, %11) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%13, %12) : (tensor<6x8xf32>, tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<6x8xi1>, tensor<6x8xf32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "_where_6", sym_visibility = "private"}> ({
  ^bb0(%arg7: tensor<6x8xi1>, %arg8: tensor<6x8xf32>):
    %7 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %8 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %9 = "stablehlo.select"(%arg7, %arg8, %8) : (tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%9) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<i1>, tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>), res_attrs = [{}, {}], sym_name = "_where_7", sym_visibility = "private"}> ({
  ^bb0(%arg5: tensor<i1>, %arg6: tensor<6x8xf32>):
    %3 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x8xf32>
    %5 = "stablehlo.select"(%arg5, %4, %arg6) : (tensor<i1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %6 = "stablehlo.select"(%arg5, %arg6, %4) : (tensor<i1>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%6, %5) : (tensor<6x8xf32>, tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "clip_8", sym_visibility = "private"}> ({
  ^bb0(%arg2: tensor<6x8xf32>, %arg3: tensor<6x8xf32>, %arg4: tensor<6x8xf32>):
    %1 = "stablehlo.multiply"(%arg4, %arg3) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %2 = "stablehlo.multiply"(%1, %arg2) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%2) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>, res_attrs = [{}], sym_name = "softplus_9", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<6x8xf32>, %arg1: tensor<6x8xf32>):
    %0 = "stablehlo.multiply"(%arg1, %arg0) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    "func.return"(%0) : (tensor<6x8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
