#include "tandem/cli/model_signature.h"

#include <map>
#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inline_calls.h"
#include "tandem/graph/passes.h"
#include "tandem/runtime/runtime.h"
#include "tandem/saved_model/load.h"

namespace tandem::cli {
namespace {

std::string list_of(const std::vector<saved_model::TensorSpec>& specs) {
  std::string text;
  for (const auto& spec : specs) text += cat(text.empty() ? "" : ", ", spec.to_string());
  return text.empty() ? "nothing" : text;
}

}  // namespace

ModelSignature::ModelSignature(const SavedModelArguments& arguments,
                               const std::vector<std::string>& fetches)
    : model_(saved_model::load(arguments.folder, {.tags = arguments.tags})),
      signature_(model_.signature(arguments.signature)),
      fetches_(fetches) {
  std::map<std::string, bool> known;
  for (const auto& spec : signature_.outputs()) {
    known[spec.name] = true;
    if (fetches.empty()) fetches_.push_back(spec.name);
  }
  for (const std::string& fetch : fetches) {
    if (!known.contains(fetch)) {
      throw NotFoundError(cat("Signature '", arguments.signature, "' has no result '", fetch,
                              "'. It returns ", list_of(signature_.outputs()), "."));
    }
  }
}

std::vector<Array> ModelSignature::run(const std::vector<std::string>& feeds,
                                       const std::vector<Array>& values) const {
  std::map<std::string, Tensor> inputs;
  for (std::size_t i = 0; i < feeds.size(); ++i) inputs.emplace(feeds[i], values.at(i));
  const auto results = signature_(inputs);
  std::vector<Array> wanted;
  for (const std::string& fetch : fetches_) wanted.push_back(results.at(fetch).tensor().array());
  return wanted;
}

ConcreteFunction ModelSignature::function() const {
  const ConcreteFunction& whole = signature_.concrete();
  MutableFunction f(*whole.function());
  std::vector<Output> results;
  for (const std::string& fetch : fetches_) {
    for (std::size_t i = 0; i < signature_.outputs().size(); ++i) {
      if (signature_.outputs()[i].name == fetch) results.push_back(f.results.at(i));
    }
  }
  f.results = std::move(results);
  passes::inline_calls(f, Runtime::current().ops());
  passes::prune(f);
  return {std::make_shared<const Function>(whole.name(), std::move(f.graph), std::move(f.args),
                                           std::move(f.results), std::move(f.control_results)),
          whole.captures()};
}

int ModelSignature::num_nodes() const {
  try {
    const FunctionRef f = function().function();
    return static_cast<int>(f->body().num_nodes() - f->args().size());
  } catch (const UnimplementedError&) {
    return 0;
  }
}

}  // namespace tandem::cli
