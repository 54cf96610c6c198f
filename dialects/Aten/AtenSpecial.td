//===- AtenSpecial.td - Special functions -----------------*- tablegen -*-===//

#ifndef SPMD_ATEN_SPECIAL_TD
#define SPMD_ATEN_SPECIAL_TD

include "dialects/Aten/AtenBase.td"

def Aten_ErfinvOp
    : Aten_RealUnaryOp<"erfinv", "inverse of erf",
                       "erfinv(s, self)">;
def Aten_LgammaOp
    : Aten_RealUnaryOp<"lgamma", "log of the absolute gamma function",
                       "lgamma(s, self)">;
def Aten_DigammaOp
    : Aten_RealUnaryOp<"digamma", "derivative of log gamma",
                       "digamma(s, self)">;
def Aten_SpecialEntrOp
    : Aten_RealUnaryOp<"special_entr", "-self * log(self), 0 at 0, -inf below",
                       "entropy(s, self)">;
def Aten_PolygammaOp
    : Aten_PointwiseOp<"polygamma", "aten::polygamma(int n, Tensor self) -> Tensor",
                       "n-th derivative of digamma"> {
  let arguments = (ins I64Attr:$n, Aten_Tensor:$self);
  let resultType = "floating";
  let body = "polygamma(s, getN(), self)";
}

// The regularized incomplete gamma functions: the part of the integral of
// t^(self - 1) exp(-t) over t >= 0 below other, and above it.
def Aten_IgammaOp
    : Aten_RealBinaryOp<"igamma", "lower incomplete gamma function",
                        "incompleteGamma(s, self, other, false)">;
def Aten_IgammacOp
    : Aten_RealBinaryOp<"igammac", "upper incomplete gamma function",
                        "incompleteGamma(s, self, other, true)">;

// The error function and the normal distribution.
def Aten_SpecialErfcxOp
    : Aten_RealUnaryOp<"special_erfcx", "exp(self^2) * erfc(self)",
                       "erfcx(s, self)">;
def Aten_SpecialLogNdtrOp
    : Aten_RealUnaryOp<"special_log_ndtr",
                       "log of the normal distribution function",
                       "logNdtr(s, self)">;
def Aten_SpecialNdtriOp
    : Aten_RealUnaryOp<"special_ndtri",
                       "inverse of the normal distribution function",
                       "ndtri(s, self)">;

// Modified Bessel functions of the first kind; those with an e are scaled by
// exp(-|self|).
def Aten_I0Op
    : Aten_RealUnaryOp<"i0", "Bessel function I of order 0",
                       "besselI(s, 0, self, false)">;
def Aten_SpecialI0eOp
    : Aten_RealUnaryOp<"special_i0e", "scaled Bessel function I of order 0",
                       "besselI(s, 0, self, true)">;
def Aten_SpecialI1Op
    : Aten_RealUnaryOp<"special_i1", "Bessel function I of order 1",
                       "besselI(s, 1, self, false)">;
def Aten_SpecialI1eOp
    : Aten_RealUnaryOp<"special_i1e", "scaled Bessel function I of order 1",
                       "besselI(s, 1, self, true)">;

#endif // SPMD_ATEN_SPECIAL_TD
