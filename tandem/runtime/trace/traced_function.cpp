#include "tandem/runtime/traced_function.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/created_variables.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/function_mode.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"
#include "tandem/runtime/trace/trace_turn.h"

namespace tandem {
namespace {

std::atomic<bool> eager_functions{false};

}  // namespace

void config::run_functions_eagerly(bool run_eagerly) { eager_functions.store(run_eagerly); }
bool config::functions_run_eagerly() { return eager_functions.load(); }

ConcreteFunction::ConcreteFunction(FunctionRef function, std::vector<Tensor> captures)
    : function_(std::move(function)), captures_(std::move(captures)) {}

// What a call gave that ran eagerly: no function, and the results in place of captured tensors,
// behind them an undefined one.
const Function& ConcreteFunction::made() const {
  if (!function_ && !captures_.empty()) {
    throw FailedPreconditionError(
        "This ConcreteFunction was made while functions run eagerly, so it has no graph. Call "
        "td::config::run_functions_eagerly(false) before td::function(f).concrete(arguments).");
  }
  if (!function_) {
    throw InvalidArgumentError(
        "This ConcreteFunction holds no function. td::function(f).concrete(arguments) gives one.");
  }
  return *function_;
}

std::vector<Tensor> ConcreteFunction::call(std::span<const Tensor> args) const {
  if (!function_ && !captures_.empty()) return {captures_.begin(), captures_.end() - 1};
  static_cast<void>(made());
  if (captures_.empty()) return call_function(function_, args);
  std::vector<Tensor> inputs;
  inputs.reserve(args.size() + captures_.size());
  inputs.insert(inputs.end(), args.begin(), args.end());
  inputs.insert(inputs.end(), captures_.begin(), captures_.end());
  return call_function(function_, inputs);
}

namespace {

// Adds where it happened, of functions that call each other or themselves once.
[[noreturn]] void rethrow_from_trace(const std::exception_ptr& error, const std::string& name) {
  const std::string line = cat("while tracing function '", name, "'");
  if (message_of(error).find("\n\t" + line) != std::string::npos) std::rethrow_exception(error);
  std::rethrow_exception(with_line(error, line));
}

}  // namespace

ConcreteFunction trace_function(
    const std::string& name, const std::vector<DType>& dtypes,
    const std::vector<PartialShape>& shapes,
    const std::function<std::vector<Tensor>(std::span<const Tensor>)>& body, bool may_optimize) {
  static std::atomic<std::uint64_t> count{0};
  ThreadContext& outer = thread_context();
  Trace trace(Runtime::current().ops(), cat(name, "_", count.fetch_add(1)), outer.trace);
  int depth = 0;
  for (const Trace* t = &trace; t; t = t->outer()) ++depth;
  constexpr int kDeepestTrace = 100;
  if (depth > kDeepestTrace) {
    throw FailedPreconditionError(cat("Function '", name, "' is traced ", kDeepestTrace,
                                      " deep inside others. Does it call itself? A traced function "
                                      "cannot; td::while_loop runs a body until a condition "
                                      "ends it."));
  }
  ThreadContextScope scope(tracing_context(trace));
  std::vector<Tensor> args;
  for (std::size_t i = 0; i < dtypes.size(); ++i)
    args.push_back(trace.add_arg(dtypes[i], shapes[i], cat("arg_", i)));
  std::vector<Tensor> results;
  const CreatedVariables made;
  try {
    results = body(args);
    made.check(trace);
  } catch (...) {
    rethrow_from_trace(std::current_exception(), name);
  }
  FunctionRef function = trace.finish(results, may_optimize);
  return ConcreteFunction(std::move(function), trace.captures());
}

void internal::check_fits(const ConcreteFunction& function, bool same_structure,
                          std::span<const Tensor> args) {
  static_cast<void>(function.graph());  // throws if there is none
  const std::vector<Node*>& wanted = function.function()->args();
  const char* const advice = " The td::function that it is a trace of traces again where it must.";
  // Captured tensors are arguments too, the last ones.
  if (!same_structure || args.size() + function.captures().size() != wanted.size()) {
    throw InvalidArgumentError(
        cat("Function '", function.name(),
            "' was traced for another structure of arguments, or other values of those that are no "
            "tensors.",
            advice));
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    const DType dtype = wanted[i]->output_dtype(0);
    const PartialShape& shape = wanted[i]->output_shape(0);
    if (args[i].dtype() == dtype && shape.is_compatible(args[i].partial_shape())) continue;
    throw InvalidArgumentError(cat("Function '", function.name(), "': argument ", i, " is ",
                                   args[i].dtype(), args[i].partial_shape(),
                                   " but the trace is for ", dtype, shape, ".", advice));
  }
}

struct TraceCache::State {
  struct Entry {
    std::string key;
    std::string device;  // that the innermost scope asks for: its nodes ask for it too
    std::vector<DType> dtypes;
    std::vector<PartialShape> shapes;
    std::shared_ptr<const TraceCache::Trace> trace;

    bool fits(const std::string& wanted, const std::string& here,
              std::span<const Tensor> args) const {
      if (args.size() != dtypes.size() || wanted != key || here != device) return false;
      for (std::size_t i = 0; i < args.size(); ++i) {
        const TensorImpl* impl = args[i].impl();
        if (!impl) return false;
        if (!impl->symbolic()) {
          if (impl->array.dtype() != dtypes[i] || !shapes[i].is_compatible(impl->array.shape()))
            return false;
        } else if (args[i].dtype() != dtypes[i] || !covers(shapes[i], args[i].partial_shape())) {
          return false;
        }
      }
      return true;
    }
    static bool covers(const PartialShape& general, const PartialShape& shape) {
      return general.relax(shape) == general;
    }
  };

  explicit State(FunctionOptions o) : options(std::move(o)) {}
  FunctionOptions options;
  // One thread traces at a time, a function that calls itself again on the same one; callers whose
  // trace is there do not wait for it.
  TraceTurn tracing;
  std::mutex mutex;  // of the entries
  std::vector<Entry> entries;

  static const std::string& device_here() {
    static const NeverDestroyed<std::string> none;
    const std::vector<std::string>& scopes = thread_context().devices;
    return scopes.empty() ? *none : scopes.back();
  }

  std::shared_ptr<const Trace> find(const std::string& key, std::span<const Tensor> args) {
    const std::string& here = device_here();
    std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i].fits(key, here, args)) continue;
      if (i != 0) std::swap(entries[0], entries[i]);
      return entries[0].trace;
    }
    return nullptr;
  }
};

TraceCache::TraceCache(FunctionOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
TraceCache::~TraceCache() = default;

std::size_t TraceCache::num_traces() const {
  std::lock_guard lock(state_->mutex);
  return state_->entries.size();
}

namespace {

// The shapes to trace for: those given, else the arguments', with sizes that keep changing left
// open.
std::vector<PartialShape> shapes_to_trace(const FunctionOptions& options,
                                          std::span<const Tensor> args,
                                          const std::vector<std::vector<PartialShape>>& traced) {
  std::vector<PartialShape> shapes;
  if (!options.input_shapes.empty()) {
    if (options.input_shapes.size() != args.size()) {
      throw InvalidArgumentError(cat("Function '", options.name, "' was made for ",
                                     options.input_shapes.size(), " tensors but is called with ",
                                     args.size(), "."));
    }
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (!options.input_shapes[i].is_compatible(args[i].partial_shape())) {
        throw InvalidArgumentError(cat("Function '", options.name, "': argument ", i, " has shape ",
                                       args[i].partial_shape(), " but the function was made for ",
                                       options.input_shapes[i], "."));
      }
    }
    return options.input_shapes;
  }
  for (const Tensor& arg : args) shapes.push_back(arg.partial_shape());
  if (static_cast<int>(traced.size()) >= options.relax_after) {
    for (const auto& earlier : traced) {
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        if (earlier[i].rank() == shapes[i].rank()) shapes[i] = shapes[i].relax(earlier[i]);
      }
    }
  }
  return shapes;
}

std::shared_ptr<const TraceCache::Trace> run_eagerly(std::span<const Tensor> args,
                                                     const TraceCache::Body& body) {
  auto trace = std::make_shared<TraceCache::Trace>();
  std::vector<Tensor> results = body(args, trace->result_structure);
  results.emplace_back();
  trace->function = ConcreteFunction(nullptr, std::move(results));
  return trace;
}

}  // namespace

std::shared_ptr<const TraceCache::Trace> TraceCache::get(const std::string& key,
                                                         std::span<const Tensor> args,
                                                         const Body& body) {
  if (eager_functions.load(std::memory_order_relaxed)) [[unlikely]]
    return run_eagerly(args, body);
  if (auto trace = state_->find(key, args)) return trace;
  const TraceTurn::Scope turn(state_->tracing);
  if (auto trace = state_->find(key, args)) return trace;  // made by another thread meanwhile
  State::Entry entry;
  entry.key = key;
  entry.device = State::device_here();
  for (const Tensor& arg : args) entry.dtypes.push_back(arg.dtype());
  std::vector<std::vector<PartialShape>> traced;
  {
    std::lock_guard lock(state_->mutex);
    for (const State::Entry& e : state_->entries) {
      if (e.key == key && e.dtypes == entry.dtypes &&
          std::equal(e.shapes.begin(), e.shapes.end(), args.begin(),
                     [](const PartialShape& s, const Tensor& t) { return s.rank() == t.rank(); })) {
        traced.push_back(e.shapes);
      }
    }
  }
  entry.shapes = shapes_to_trace(state_->options, args, traced);
  auto trace = std::make_shared<Trace>();
  trace->function = trace_function(
      state_->options.name, entry.dtypes, entry.shapes,
      [&](std::span<const Tensor> symbols) { return body(symbols, trace->result_structure); },
      state_->options.optimize);
  entry.trace = trace;
  // Made by another thread meanwhile, where this one traced without having the turn.
  if (auto known = state_->find(key, args)) return known;
  std::lock_guard lock(state_->mutex);
  state_->entries.insert(state_->entries.begin(), std::move(entry));
  return trace;
}

}  // namespace tandem
