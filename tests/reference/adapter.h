#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/reference/case.h"

// The only part that knows Tandem: everything else asks these functions.
namespace reference {

/// An error of the system under test; `code` is the canonical name, or "" for an exception that is
/// not one of its own.
class Refusal : public std::runtime_error {
 public:
  Refusal(std::string code, const std::string& message)
      : std::runtime_error(message), code_(std::move(code)) {}
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

/// Eager calls, or the same calls traced into a function that is then run.
enum class Mode { kEager, kTraced };

bool has_op(const std::string& name);
/// Whether devices of a kernel class ("cpu", "cuda") have a kernel for the call's types.
bool has_kernel(const Call& call, const std::string& kernel_class);

struct Result {
  std::vector<Value> outputs;
  std::vector<Value> variables;  ///< after the call; an empty dtype: not set
};

/// Makes the call once. All of these throw Refusal.
Result run(const Call& call, Mode mode);

/// Makes the call `count` times in a runtime where it was never made before.
std::vector<std::vector<Value>> run_afresh(const Call& call, int count, Mode mode);

struct Gradients {
  std::vector<Value> outputs;
  std::vector<Value> gradients;  ///< one an input with lists flattened; an empty dtype: none
  std::vector<Value> second;     ///< where asked for, the same
  std::vector<Value> towards_upstream;
};

/// The gradients of Σ upstream·output by a persistent tape; with `upstream2` also those of Σ
/// upstream2·gradient.
Gradients differentiate(const Call& call, const std::vector<Value>& upstream,
                        const std::vector<Value>* upstream2, Mode mode);

/// What is known beforehand of the inputs that are no literals: their shapes, their ranks, nothing.
enum class Knowledge { kShapes, kRanks, kNothing };

/// A shape with -1 for unknown sizes, or nothing where not even the rank is known.
using KnownShape = std::optional<std::vector<std::int64_t>>;

/// The shapes of the outputs as the shape function gives them.
std::vector<KnownShape> infer_shapes(const Call& call, Knowledge knowledge);

}  // namespace reference
