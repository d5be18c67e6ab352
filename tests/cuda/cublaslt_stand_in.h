#pragma once

// What tests may ask of the stand-in for cuBLASLt, beside the library's own functions.

extern "C" {

struct CublasLtStandInUse {
  /// Calls: for algorithms of a problem, for whether a kept one still serves, and for products.
  long long heuristics, checks, products;
  long long products_in_tf32;
};

struct CublasLtStandInControl {
  CublasLtStandInUse (*used)();
};

/// The library's one function beside cuBLASLt's.
const CublasLtStandInControl* cublaslt_stand_in_control();
}
