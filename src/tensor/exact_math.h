// tensor/exact_math.h
// Scalar exp, log and their kin whose bits do not depend on the machine, the C library or the
// vector width: SLEEF's deterministic FMA variants ("finz", 1.0 ULP). The vector kernels call the
// same functions at their widths. Declared here because sleef.h hides them from code built without
// FMA.
#pragma once

extern "C" {
float Sleef_finz_expf1_u10purecfma(float);
float Sleef_finz_logf1_u10purecfma(float);
double Sleef_finz_cosd1_u10purecfma(double);
double Sleef_finz_sind1_u10purecfma(double);
double Sleef_finz_powd1_u10purecfma(double, double);
}

namespace plumb::tensor {

// Thread: any; pure. exp(-inf) is exactly 0.
inline float ExactExp(float x) { return Sleef_finz_expf1_u10purecfma(x); }
inline float ExactLog(float x) { return Sleef_finz_logf1_u10purecfma(x); }
inline double ExactCos(double x) { return Sleef_finz_cosd1_u10purecfma(x); }
inline double ExactSin(double x) { return Sleef_finz_sind1_u10purecfma(x); }
inline double ExactPow(double x, double y) { return Sleef_finz_powd1_u10purecfma(x, y); }

// GELU in its tanh form: x (1 + tanh(u)) / 2 = x / (1 + exp(-2 u)), u = sqrt(2/pi) (x + 0.044715
// x^3). Hendrycks and Gimpel 2016, "Gaussian Error Linear Units", section 2.
inline constexpr float kGeluCubic = 0.044715f;
inline constexpr float kGeluExponent = -1.5957691216057308f;  // -2 sqrt(2/pi)

}  // namespace plumb::tensor
