#include "tandem/saved_model/function.h"

#include <algorithm>
#include <set>

#include "tandem/core/error.h"
#include "tandem/saved_model/internal/concrete.h"
#include "tandem/saved_model/internal/structured_value.h"

namespace tandem::saved_model {
namespace {

using internal::Concrete;

void check_names(const char* what, const std::vector<std::string>& names, std::size_t wanted) {
  if (names.empty()) return;
  if (names.size() != wanted) {
    throw InvalidArgumentError(cat("The function has ", wanted, " ", what, wanted == 1 ? "" : "s",
                                   ", but ", names.size(), names.size() == 1 ? " is" : " are",
                                   " named."));
  }
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty() || !seen.insert(name).second)
      throw InvalidArgumentError(cat("Each ", what, " of a function needs a name of its own, but '",
                                     name, "' is ", name.empty() ? "empty." : "there twice."));
  }
}

std::vector<TensorSpec> arg_specs(const ConcreteFunction& function, const Names& names) {
  if (!function.defined())
    throw InvalidArgumentError("There is no function: td::function(...).concrete(...) gives one.");
  const auto& args = function.function()->args();
  const std::size_t count = args.size() - function.captures().size();
  check_names("argument", names.inputs, count);
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < count; ++i) {
    specs.push_back({args[i]->output_dtype(0), args[i]->output_shape(0),
                     names.inputs.empty() ? args[i]->name() : names.inputs[i]});
  }
  return specs;
}

std::vector<TensorSpec> result_specs(const ConcreteFunction& function, const Names& names) {
  const std::vector<DType> dtypes = function.function()->result_dtypes();
  const std::vector<PartialShape> shapes = function.function()->result_shapes();
  check_names("result", names.outputs, dtypes.size());
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    specs.push_back(
        {dtypes[i], shapes[i], names.outputs.empty() ? cat("output_", i) : names.outputs[i]});
  }
  return specs;
}

Value dict_of(const std::vector<TensorSpec>& specs) {
  std::map<std::string, Value> items;
  for (const TensorSpec& spec : specs) items.emplace(spec.name, spec);
  return Value::dict(std::move(items));
}

}  // namespace

// ---- Signature ----

Signature::Signature(std::shared_ptr<Concrete> concrete) : concrete_(std::move(concrete)) {}

// The arguments of a signature go by name, so their order may be the one of the trace.
Signature::Signature(const ConcreteFunction& function, const Names& names) {
  auto concrete = std::make_shared<Concrete>();
  concrete->input_specs = arg_specs(function, names);
  concrete->output_specs = result_specs(function, names);
  concrete->inputs = Value::tuple({Value::tuple({}), dict_of(concrete->input_specs)});
  concrete->outputs = dict_of(concrete->output_specs);
  concrete->name = function.name();
  concrete->make = [function] { return function; };
  concrete_ = std::move(concrete);
}

const Concrete& Signature::made() const {
  if (!concrete_)
    throw FailedPreconditionError("This Signature is none. Module::signature(name) gives one.");
  return *concrete_;
}

const std::vector<TensorSpec>& Signature::inputs() const { return made().input_specs; }
const std::vector<TensorSpec>& Signature::outputs() const { return made().output_specs; }
const ConcreteFunction& Signature::concrete() const { return made().get(); }

std::map<std::string, Value> Signature::operator()(
    const std::map<std::string, Tensor>& inputs) const {
  const Concrete& concrete = made();
  const auto wanted = [&] {
    std::string text;
    for (const TensorSpec& spec : concrete.input_specs)
      text += cat(text.empty() ? "" : ", ", spec.to_string());
    return text.empty() ? std::string("nothing") : text;
  };
  std::vector<Tensor> args;
  for (const TensorSpec& spec : concrete.input_specs) {
    const auto given = inputs.find(spec.name);
    if (given == inputs.end()) {
      throw InvalidArgumentError(
          cat("The signature needs '", spec.name, "': it takes ", wanted(), "."));
    }
    std::vector<Tensor> fitting;
    if (!internal::fits(spec, given->second, fitting)) {
      throw InvalidArgumentError(cat("The signature takes ", spec.to_string(), ", got ",
                                     Value(given->second).to_string(), "."));
    }
    args.push_back(given->second);
  }
  for (const auto& [name, tensor] : inputs) {
    const bool known =
        std::any_of(concrete.input_specs.begin(), concrete.input_specs.end(),
                    [&name = name](const TensorSpec& spec) { return spec.name == name; });
    if (!known) {
      throw InvalidArgumentError(
          cat("The signature has no input '", name, "': it takes ", wanted(), "."));
    }
  }
  const std::vector<Tensor> results = concrete.call(args);
  std::map<std::string, Value> named;
  for (std::size_t i = 0; i < concrete.output_specs.size(); ++i)
    named.emplace(concrete.output_specs[i].name, results.at(i));
  for (std::size_t i = 0; i < concrete.outputs.items().size(); ++i) {
    const Value& item = concrete.outputs.items()[i];
    if (item.kind() != Value::Kind::kCompositeSpec || concrete.outputs.keys().empty()) continue;
    const std::string& name = concrete.outputs.keys()[i];
    std::vector<Tensor> tensors;
    for (std::size_t p = 0; p < item.items().size(); ++p) {
      const auto part = named.find(item.items().size() == 1 ? name : cat(name, ":", p));
      if (part != named.end()) tensors.push_back(part->second.tensor());
    }
    named.insert_or_assign(name, internal::pack(item, tensors));
  }
  return named;
}

// ---- Function ----

std::string ArgSpec::to_string() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += text.empty() ? part : ", " + part; };
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::size_t first = args.size() - std::min(defaults.size(), args.size());
    add(i < first ? args[i] : cat(args[i], "=", defaults[i - first].to_string()));
  }
  if (!varargs.empty()) add("*" + varargs);
  if (varargs.empty() && !kwonlyargs.empty()) add("*");
  for (const std::string& name : kwonlyargs) {
    const auto found = kwonlydefaults.find(name);
    add(found == kwonlydefaults.end() ? name : cat(name, "=", found->second.to_string()));
  }
  if (!varkw.empty()) add("**" + varkw);
  return cat("(", text, ")");
}

struct Function::State {
  ArgSpec args;
  std::vector<std::shared_ptr<Concrete>> traces;
};

Function::Function(ArgSpec args, std::vector<std::shared_ptr<Concrete>> traces)
    : state_(std::make_shared<const State>(State{std::move(args), std::move(traces)})) {}

Function::Function(const std::vector<ConcreteFunction>& traces, const Names& names) {
  if (traces.empty())
    throw InvalidArgumentError("A Function needs a trace: td::function(...).concrete(...).");
  State state;
  for (const ConcreteFunction& trace : traces) {
    const std::vector<TensorSpec> inputs = arg_specs(trace, names);
    const std::vector<TensorSpec> outputs = result_specs(trace, names);
    if (state.traces.empty()) {
      for (const TensorSpec& spec : inputs) state.args.args.push_back(spec.name);
    } else if (inputs.size() != state.args.args.size()) {
      throw InvalidArgumentError(cat("The traces of a Function take ", state.args.args.size(),
                                     " and ", inputs.size(),
                                     " arguments; they must take as many."));
    }
    auto concrete = std::make_shared<Concrete>();
    concrete->inputs =
        Value::tuple({Value::tuple({inputs.begin(), inputs.end()}), Value::dict({})});
    concrete->outputs = !names.outputs.empty() ? dict_of(outputs)
                        : outputs.size() == 1  ? Value(outputs[0])
                                               : Value::tuple({outputs.begin(), outputs.end()});
    concrete->name = trace.name();
    // A dictionary's values come in the order of its keys.
    std::vector<std::size_t> order(outputs.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (!names.outputs.empty()) {
      std::sort(order.begin(), order.end(),
                [&](std::size_t a, std::size_t b) { return names.outputs[a] < names.outputs[b]; });
    }
    concrete->make = [trace, order] {
      if (std::is_sorted(order.begin(), order.end())) return trace;
      const auto& f = *trace.function();
      std::vector<Node*> mapped;
      Graph body = f.body().clone(&mapped);
      const auto here = [&](const Node* node) {
        return mapped[static_cast<std::size_t>(node->id())];
      };
      std::vector<Node*> args, effects;
      std::vector<Output> results;
      for (const Node* arg : f.args()) args.push_back(here(arg));
      for (const Node* effect : f.control_results()) effects.push_back(here(effect));
      for (const std::size_t i : order)
        results.push_back({here(f.results()[i].node), f.results()[i].index});
      return ConcreteFunction(std::make_shared<const tandem::Function>(
                                  f.name(), std::move(body), std::move(args), std::move(results),
                                  std::move(effects), f.may_optimize()),
                              trace.captures());
    };
    concrete->name_specs();
    state.traces.push_back(std::move(concrete));
  }
  state_ = std::make_shared<const State>(std::move(state));
}

const Function::State& Function::state() const {
  if (!state_)
    throw FailedPreconditionError("This Function is none. Module::function(path) gives one.");
  return *state_;
}

const std::vector<std::shared_ptr<Concrete>>& Function::impl() const { return state().traces; }
const ArgSpec& Function::arg_spec() const { return state().args; }
std::size_t Function::num_traces() const { return state().traces.size(); }
const Value& Function::inputs(std::size_t trace) const { return state().traces.at(trace)->inputs; }
const Value& Function::outputs(std::size_t trace) const {
  return state().traces.at(trace)->outputs;
}
const ConcreteFunction& Function::concrete(std::size_t trace) const {
  return state().traces.at(trace)->get();
}

namespace {

// The arguments in the places that Python gives them: (positional ones, keyword ones).
Value canonical(const ArgSpec& spec, const std::vector<Value>& args,
                std::map<std::string, Value> kwargs) {
  const auto fail = [&](const std::string& why) {
    throw InvalidArgumentError(cat("The function takes ", spec.to_string(), ": ", why));
  };
  if (args.size() > spec.args.size() && spec.varargs.empty())
    fail(cat("it was given ", args.size(), " positional arguments."));
  std::vector<Value> positional(args);
  for (std::size_t i = 0; i < spec.args.size(); ++i) {
    const auto named = kwargs.find(spec.args[i]);
    if (i < args.size()) {
      if (named != kwargs.end()) fail(cat("it was given '", spec.args[i], "' twice."));
      continue;
    }
    const std::size_t first = spec.args.size() - std::min(spec.defaults.size(), spec.args.size());
    if (named != kwargs.end()) {
      positional.push_back(named->second);
      kwargs.erase(named);
    } else if (i >= first) {
      positional.push_back(spec.defaults[i - first]);
    } else {
      fail(cat("'", spec.args[i], "' is missing."));
    }
  }
  for (const std::string& name : spec.kwonlyargs) {
    if (kwargs.contains(name)) continue;
    const auto otherwise = spec.kwonlydefaults.find(name);
    if (otherwise == spec.kwonlydefaults.end()) fail(cat("'", name, "' is missing."));
    kwargs.emplace(name, otherwise->second);
  }
  for (const auto& [name, value] : kwargs) {
    const bool known =
        std::find(spec.kwonlyargs.begin(), spec.kwonlyargs.end(), name) != spec.kwonlyargs.end();
    if (!known && spec.varkw.empty()) fail(cat("it has no argument '", name, "'."));
  }
  return Value::tuple({Value::tuple(std::move(positional)), Value::dict(std::move(kwargs))});
}

}  // namespace

Value Function::call(const std::vector<Value>& args,
                     const std::map<std::string, Value>& kwargs) const {
  const State& s = state();
  const Value given = canonical(s.args, args, kwargs);
  for (const auto& trace : s.traces) {
    std::vector<Tensor> tensors;
    if (!internal::fits(trace->inputs, given, tensors)) continue;
    return internal::pack(trace->outputs, trace->call(tensors));
  }
  std::string text = cat("Could not find matching concrete function to call loaded from the ",
                         "SavedModel. Got:\n  ", given.to_string(), "\nExpected ",
                         s.traces.size() == 1 ? "" : "one of ", "the following:");
  for (const auto& trace : s.traces) text += cat("\n  ", trace->inputs.to_string());
  throw InvalidArgumentError(text);
}

}  // namespace tandem::saved_model
