#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "tandem/data/dataset_base.h"
#include "tandem/data/dataset_options.h"
#include "tandem/data/element.h"
#include "tandem/data/iteration_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::data {

/// A function on elements as a graph, traced once, that runs by its plan on the calling thread and
/// on the first CPU, whatever the thread's devices. Immutable but for its plans; usable from any
/// thread.
class ElementProgram {
 public:
  /// Traces `fn` on elements of this spec; throws what it throws.
  ElementProgram(const ElementFn& fn, const ElementSpec& input);

  /// The spec of the results.
  const ElementSpec& spec() const { return spec_; }
  const ElementSpec& input_spec() const { return input_; }
  const ConcreteFunction& function() const { return function_; }
  /// While it was traced the function asked for sizes that were not known, and got -1.
  bool asked_unknown_sizes() const { return asked_unknown_sizes_; }
  /// No op of it has effects or draws random numbers.
  bool stateless() const;
  /// Some op of it may draw random numbers; what only reads a table does not.
  bool may_draw() const;

  /// Each set of sizes takes a plan. Past so many, other sizes are not worth theirs.
  static constexpr std::size_t kMaxPlans = 24;
  bool worth_running(const Element& element) const;
  /// Replaces the element by the results. Throws InvalidArgumentError if it has not the spec that
  /// the function was traced for.
  void apply(Element& element) const;
  /// Sets `results`, one for each of `spec`, of an element that it empties; made in `places`, as
  /// many or none, where that can be done.
  void run(Element& element, std::span<const Array> places, std::span<Array> results) const;
  /// Runs on an element that stays as it is.
  void run_kept(const Element& element, std::span<Array> results) const;

 private:
  class Call;
  void check(const Element& element) const;

  ElementSpec input_;
  ElementSpec spec_;
  bool asked_unknown_sizes_ = false;
  bool same_sizes_ = true;  // all elements have one set of sizes
  ConcreteFunction function_;
  std::vector<Array> captures_;
  mutable std::mutex mutex_;
  mutable std::vector<std::vector<Shape>> planned_;  // sets of sizes seen
};

/// The ops of a program once more, called on these arguments: in a trace they become part of it.
Element emit(const ElementProgram& program, const Element& args);
/// `second` on the results of `first`, as one program.
std::shared_ptr<const ElementProgram> compose(const ElementProgram& first,
                                              const ElementProgram& second);

/// A dataset with a function that may be traced.
class TracingStage {
 public:
  virtual ~TracingStage() = default;
  /// Traces it if that has not been done yet; null where the function is called.
  virtual const std::shared_ptr<const ElementProgram>& program() const = 0;
};

/// Whether elements of this spec can be traced.
bool dtypes_known(const ElementSpec& spec);

/// Traces the functions of the dataset and those before it that are to be traced. Afterwards
/// datasets know the number of their components whose spec is known without iterating.
void trace_functions(const DatasetBase& dataset);

/// The program of a map, or null where its function is to be called for each element: see
/// MapOptions::traced.
std::shared_ptr<const ElementProgram> trace_map(const ElementFn& fn, const DatasetBase& input,
                                                std::optional<bool> traced);

/// The program of a function that runs on another task, where C++ cannot be called: `program`, or
/// `fn` traced whatever it holds. Throws UnimplementedError, naming the stage ("map"), if it cannot
/// be.
std::shared_ptr<const ElementProgram> trace_for_op(const ElementFn& fn,
                                                   std::shared_ptr<const ElementProgram> program,
                                                   const DatasetBase& input, const char* stage);

/// `fn` by its program, which may be null.
ElementFn by_program(const ElementFn& fn, std::shared_ptr<const ElementProgram> program);

}  // namespace tandem::data
