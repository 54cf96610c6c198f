//===- AtenWindow.td - Convolutions, pools, windows --------*- tablegen -*-===//
//
// Inputs are [batch, channels, spatial dimensions]; stride, padding and dilation
// have one entry per spatial dimension. Import adds the batch dimension where
// PyTorch lets it be absent.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_ATEN_WINDOW_TD
#define SPMD_ATEN_WINDOW_TD

include "dialects/Aten/AtenBase.td"

def Aten_ConvolutionOp
    : Aten_Op<"convolution",
              "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
              "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
              "correlation of windows of the input with each output channel's weight"> {
  let arguments = (ins Aten_Tensor:$input, Aten_Tensor:$weight,
                   Optional<Aten_Tensor>:$bias, DenseI64ArrayAttr:$stride,
                   DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation,
                   Aten_False:$transposed, DenseI64ArrayAttr:$output_padding,
                   I64Attr:$groups);
  let results = (outs Aten_Tensor:$result);
  let heavy = "true";
  let rule = "convolutionRule(op)";
  let flops = "convolutionFlops(op)";
  let verifier = "verifyConvolution(op)";
}
def Aten_ConvolutionBackwardOp
    : Aten_Op<"convolution_backward",
              "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
              "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, "
              "SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
              "gradients of convolution that output_mask asks for",
              [AttrSizedResultSegments]> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$input,
                   Aten_Tensor:$weight,
                   OptionalAttr<DenseI64ArrayAttr>:$bias_sizes,
                   DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding,
                   DenseI64ArrayAttr:$dilation, Aten_False:$transposed,
                   DenseI64ArrayAttr:$output_padding, I64Attr:$groups,
                   DenseBoolArrayAttr:$output_mask);
  let results = (outs Optional<Aten_Tensor>:$grad_input,
                 Optional<Aten_Tensor>:$grad_weight,
                 Optional<Aten_Tensor>:$grad_bias);
  let heavy = "true";
  let rule = "convolutionBackwardRule(op)";
  let flops = "convolutionFlops(op)";
  let verifier = "verifyConvolution(op)";
}

// Max pools; indices count the elements of the input's plane.
class Aten_MaxPoolOp<string dims>
    : Aten_Op<"max_pool" # dims # "d_with_indices",
              "aten::max_pool" # dims # "d_with_indices(Tensor self, int[" # dims # "] kernel_size, int[" # dims #
              "] stride=[], int[" # dims # "] padding=0, int[" # dims # "] dilation=1, bool ceil_mode=False) "
              "-> (Tensor, Tensor)",
              "largest element of each window, and where in the plane it is"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$kernel_size,
                   DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding,
                   DenseI64ArrayAttr:$dilation, Aten_False:$ceil_mode);
  let results = (outs Aten_Tensor:$out, Aten_Tensor:$indices);
  let rule = "windowRule(op)";
  let flops = "operandElements(op, 4)";
  let verifier = "verifyMaxPool(op)";
}
class Aten_MaxPoolBackwardOp<string dims>
    : Aten_Op<"max_pool" # dims # "d_with_indices_backward",
              "aten::max_pool" # dims # "d_with_indices_backward(Tensor grad_output, Tensor self, int[" # dims #
              "] kernel_size, int[" # dims # "] stride, int[" # dims # "] padding, int[" # dims # "] dilation, "
              "bool ceil_mode, Tensor indices) -> Tensor",
              "the gradients of the windows whose largest element each element is"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   DenseI64ArrayAttr:$kernel_size, DenseI64ArrayAttr:$stride,
                   DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation,
                   Aten_False:$ceil_mode, Aten_Tensor:$indices);
  let results = (outs Aten_Tensor:$result);
  let rule = "windowRule(op, Linearity::multilinear, {0})";
  let flops = "operandElements(op, 8)";
  let verifier = "verifyMaxPool(op)";
}
def Aten_MaxPool2dWithIndicesOp : Aten_MaxPoolOp<"2">;
def Aten_MaxPool3dWithIndicesOp : Aten_MaxPoolOp<"3">;
def Aten_MaxPool2dWithIndicesBackwardOp : Aten_MaxPoolBackwardOp<"2">;
def Aten_MaxPool3dWithIndicesBackwardOp : Aten_MaxPoolBackwardOp<"3">;

// Windows as columns: [batch, channels * kernel elements, windows].
def Aten_Im2colOp
    : Aten_Op<"im2col",
              "aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
              "the windows of an image, one per column (unfold)"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$kernel_size,
                   DenseI64ArrayAttr:$dilation, DenseI64ArrayAttr:$padding,
                   DenseI64ArrayAttr:$stride);
  let results = (outs Aten_Tensor:$result);
  let rule = "batchRule(op, Linearity::additive)";
  let verifier = "verifyIm2col(op)";
}
def Aten_Col2imOp
    : Aten_Op<"col2im",
              "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, "
              "int[2] stride) -> Tensor",
              "an image as the sum of its windows (fold)"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$output_size,
                   DenseI64ArrayAttr:$kernel_size, DenseI64ArrayAttr:$dilation,
                   DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$stride);
  let results = (outs Aten_Tensor:$result);
  let rule = "batchRule(op, Linearity::additive)";
  let flops = "operandElements(op)";
  let verifier = "verifyIm2col(op)";
}

#endif // SPMD_ATEN_WINDOW_TD
