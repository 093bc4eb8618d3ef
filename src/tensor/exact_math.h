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

}  // namespace plumb::tensor
