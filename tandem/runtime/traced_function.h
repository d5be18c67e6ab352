#pragma once

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/graph/function.h"
#include "tandem/runtime/structure.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// One trace of a function: a graph for one signature, with the outside tensors it captured. A
/// shared handle.
class TANDEM_EXPORT ConcreteFunction {
 public:
  /// Nothing, of which only defined(), function() and captures() may be asked: the rest throws
  /// InvalidArgumentError.
  ConcreteFunction() = default;
  ConcreteFunction(FunctionRef function, std::vector<Tensor> captures);

  bool defined() const { return function_ != nullptr; }
  /// The graph, to look at: `concrete.graph().to_string()`.
  const Graph& graph() const { return made().body(); }
  const FunctionRef& function() const { return function_; }
  const std::string& name() const { return made().name(); }
  const std::vector<Tensor>& captures() const { return captures_; }
  /// Calls with flat arguments (captures are added). Passes the dispatch seam, so it can be traced
  /// and differentiated.
  std::vector<Tensor> call(std::span<const Tensor> args) const;

 private:
  const Function& made() const;  // throws if there is none

  FunctionRef function_;
  std::vector<Tensor> captures_;
};

/// Traces `body` with symbolic arguments of these dtypes and shapes.
TANDEM_EXPORT ConcreteFunction
trace_function(const std::string& name, const std::vector<DType>& dtypes,
               const std::vector<PartialShape>& shapes,
               const std::function<std::vector<Tensor>(std::span<const Tensor>)>& body,
               bool may_optimize = true);

/// The options of a traced function.
struct FunctionOptions {
  String name = "function";
  /// If given (one for each tensor argument), sizes make no further trace: there is one, for these
  /// shapes (for each set of dtypes and of arguments that are no tensors).
  std::vector<PartialShape> input_shapes = {};
  /// After this many traces that differ in sizes only, the sizes that differ become unknown and one
  /// trace serves all.
  int relax_after = 3;
  /// False: every op runs as traced; nothing is folded, merged or dropped. For measuring and for
  /// debugging.
  bool optimize = true;
};

/// The traces of one function by signature: the part of td::function that does not depend on C++
/// types. Thread-safe.
class TANDEM_EXPORT TraceCache {
 public:
  explicit TraceCache(FunctionOptions options);
  ~TraceCache();
  struct Trace {
    ConcreteFunction function;
    std::any result_structure;
  };
  using Body =
      std::function<std::vector<Tensor>(std::span<const Tensor> args, std::any& result_structure)>;
  /// The trace for these arguments, made by `body` if there is none.
  std::shared_ptr<const Trace> get(const std::string& key, std::span<const Tensor> args,
                                   const Body& body);
  std::size_t num_traces() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace internal {

template <class T>
struct CallableTraits : CallableTraits<decltype(&T::operator())> {};
template <class R, class... Args>
struct CallableTraits<R (*)(Args...)> {
  using Result = std::decay_t<R>;
  using Arguments = std::tuple<std::decay_t<Args>...>;
};
template <class C, class R, class... Args>
struct CallableTraits<R (C::*)(Args...) const> : CallableTraits<R (*)(Args...)> {};
template <class C, class R, class... Args>
struct CallableTraits<R (C::*)(Args...)> : CallableTraits<R (*)(Args...)> {};

/// The trace's results in the structure that the callable gave them.
template <class Result>
Result call_trace(const TraceCache::Trace& trace, std::span<const Tensor> args) {
  std::vector<Tensor> results = trace.function.call(args);
  if constexpr (!std::is_void_v<Result>) {
    StructureReader reader(std::move(results));
    return Structure<Result>::read(*std::any_cast<Result>(&trace.result_structure), reader);
  }
}
/// Throws InvalidArgumentError unless the function was traced for tensors like these.
TANDEM_EXPORT void check_fits(const ConcreteFunction& function, bool same_structure,
                              std::span<const Tensor> args);

}  // namespace internal

/// One trace of a td::function, to look at as every ConcreteFunction, and to call as the function
/// itself:
///
///     auto step = f.concrete(x, y);
///     td::Tensor l = step(x, y);  // never traces
///
/// What it returns was traced: of arguments that are no tensors it takes the values that it was
/// made for. Throws InvalidArgumentError for others, and for tensors whose dtypes or shapes it was
/// not traced for.
template <class Result, class Arguments>
class CallableConcreteFunction : public ConcreteFunction {
 public:
  CallableConcreteFunction(std::shared_ptr<const TraceCache::Trace> trace, std::string key)
      : ConcreteFunction(trace->function), trace_(std::move(trace)), key_(std::move(key)) {}

  template <class... Args>
  Result operator()(Args&&... args) const {
    const Arguments arguments{std::forward<Args>(args)...};
    StructureWriter writer;
    Structure<Arguments>::write(arguments, writer);
    internal::check_fits(*this, writer.key == key_, writer.tensors);
    return internal::call_trace<Result>(*trace_, writer.tensors);
  }

 private:
  std::shared_ptr<const TraceCache::Trace> trace_;
  std::string key_;
};

/// A C++ callable that is traced once per signature into a graph, and then runs as that graph. Made
/// by td::function.
///
/// The signature is the structure of the arguments, the values of those that are no tensors, the
/// tensors' dtypes and shapes, and the device scopes of the call. Copies share traces. Thread-safe
/// if the callable is; calls of one trace run concurrently.
template <class F>
class TracedFunction {
  using Traits = internal::CallableTraits<F>;

 public:
  using Result = typename Traits::Result;
  using Arguments = typename Traits::Arguments;

  TracedFunction(F callable, FunctionOptions options)
      : callable_(std::make_shared<F>(std::move(callable))),
        cache_(std::make_shared<TraceCache>(std::move(options))) {}
  // Copies only: a moved-from function can still be called.
  TracedFunction(const TracedFunction&) = default;
  TracedFunction& operator=(const TracedFunction&) = default;

  template <class... Args>
  Result operator()(Args&&... args) const {
    const Arguments arguments{std::forward<Args>(args)...};
    StructureWriter writer;
    writer.tensors.reserve(sizeof...(Args));
    Structure<Arguments>::write(arguments, writer);
    return internal::call_trace<Result>(*find(arguments, writer), writer.tensors);
  }

  /// The trace that a call with these arguments would use.
  template <class... Args>
  CallableConcreteFunction<Result, Arguments> concrete(Args&&... args) const {
    const Arguments arguments{std::forward<Args>(args)...};
    StructureWriter writer;
    Structure<Arguments>::write(arguments, writer);
    auto trace = find(arguments, writer);
    return {std::move(trace), std::move(writer.key)};
  }

  /// How many traces there are.
  std::size_t num_traces() const { return cache_->num_traces(); }

 private:
  std::shared_ptr<const TraceCache::Trace> find(const Arguments& arguments,
                                                const StructureWriter& writer) const {
    return cache_->get(writer.key, writer.tensors,
                       [&](std::span<const Tensor> symbols, std::any& structure) {
                         StructureReader reader({symbols.begin(), symbols.end()});
                         Arguments traced = Structure<Arguments>::read(arguments, reader);
                         StructureWriter results;
                         if constexpr (std::is_void_v<Result>) {
                           std::apply(*callable_, std::move(traced));
                         } else {
                           Result result = std::apply(*callable_, std::move(traced));
                           Structure<Result>::write(result, results);
                           structure = std::move(result);
                         }
                         return std::move(results.tensors);
                       });
  }

  std::shared_ptr<F> callable_;
  std::shared_ptr<TraceCache> cache_;
};

/// Makes a traced function of any callable over tensors and structures of tensors:
///
///     auto step = td::function([&](td::Tensor x, td::Tensor y) { return loss(model(x), y); });
///     td::Tensor l = step(x, y);   // traced at the first call for these dtypes and shapes
///
/// The callable's parameters must have definite types (no `auto`). Variables and outside tensors
/// are captured.
template <class F>
auto function(F callable, FunctionOptions options = {}) {
  return TracedFunction<std::decay_t<F>>(std::move(callable), std::move(options));
}

}  // namespace tandem
