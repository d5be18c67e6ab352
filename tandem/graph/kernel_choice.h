#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

class Node;

/// How a kernel computes a class of problems, where it has several implementations: which one runs,
/// why, and what was measured. A plain value, for `explain`.
struct KernelChoice {
  struct Candidate {
    std::string name;     ///< "oneDNN gemm"
    double seconds = 0;   ///< measured; 0: not measured
    std::string refused;  ///< why it cannot run; empty: it can
  };
  std::string problem;  ///< "matmul float nn 512+ x 512+ x 512+"
  int threads = 0;      ///< that were measured with; 0: not measured
  std::string chosen;   ///< a candidate's name
  std::string reason;   ///< "fastest of 3 measured", "tuning is off (TANDEM_TUNING=0)"
  std::vector<Candidate> candidates;
};

/// What a kernel knows about a node's problem before it runs; nothing where the node's shapes are
/// not known well enough, or where there is only one way. Must not run anything.
using DescribeKernelChoice = std::optional<KernelChoice> (*)(const Node&);

/// Registers the description of an op's kernel on a kernel class; a constant at namespace scope, as
/// KernelRegistration.
class TANDEM_EXPORT KernelChoiceRegistration {
 public:
  KernelChoiceRegistration(const char* op, const char* kernel_class, DescribeKernelChoice describe);

 private:
  friend TANDEM_EXPORT std::optional<KernelChoice> describe_kernel_choice(const Node&, const char*);
  const char* op_;
  const char* kernel_class_;
  DescribeKernelChoice describe_;
  const KernelChoiceRegistration* next_;
};

/// How kernels of `kernel_class` would compute a node. Thread-safe.
TANDEM_EXPORT std::optional<KernelChoice> describe_kernel_choice(const Node& node,
                                                                 const char* kernel_class);

}  // namespace tandem
