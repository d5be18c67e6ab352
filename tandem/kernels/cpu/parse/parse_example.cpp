// ParseExampleV2, ParseExample and ParseSingleExample: keys are inputs or attributes.

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/parse/example_parser.h"

namespace tandem::cpu {
namespace {

void parse(KernelContext& c, const ExampleRequest& request, const Array* names) {
  const int used =
      parse_examples(c, c.input(0), request, c.attr<std::vector<PartialShape>>("dense_shapes"),
                     c.num_inputs() - request.first_default, names);
  if (used != c.num_outputs()) {
    throw InvalidArgumentError(cat("The numbers of keys and of types do not agree: there are ",
                                   c.num_outputs(), " outputs."));
  }
}

void parse_example_v2(KernelContext& c) {
  if (c.input(0).rank() > 1) {
    throw InvalidArgumentError(
        cat("Expected serialized to be a scalar or vector, got shape: ", c.input(0).shape()));
  }
  // Before anything is written: outputs are found by the numbers of keys.
  const auto types = [&](const char* name) { return c.attr<std::vector<DType>>(name).size(); };
  const auto sparse = static_cast<std::size_t>(c.input(2).num_elements());
  const auto ragged = static_cast<std::size_t>(c.input(4).num_elements());
  check_count("sparse_keys", sparse, "sparse_types", types("sparse_types"));
  check_count("sparse_keys", sparse, "num_sparse",
              static_cast<std::size_t>(c.attr<std::int64_t>("num_sparse")));
  check_count("ragged_keys", ragged, "ragged_value_types", types("ragged_value_types"));
  check_count("ragged_keys", ragged, "ragged_split_types", types("ragged_split_types"));
  parse(c, {strings_of(c.input(2)), strings_of(c.input(3)), strings_of(c.input(4)), 5},
        &c.input(1));
}

void parse_example(KernelContext& c) {
  if (c.input(0).rank() != 1) {
    throw InvalidArgumentError(
        cat("Expected serialized to be a vector, got shape: ", c.input(0).shape()));
  }
  const int sparse = static_cast<int>(c.attr<std::int64_t>("Nsparse"));
  const int dense = static_cast<int>(c.attr<std::int64_t>("Ndense"));
  ExampleRequest request;
  request.first_default = 2 + sparse + dense;
  for (int i = 0; i < sparse + dense; ++i) {
    (i < sparse ? request.sparse : request.dense).push_back(key_of(c.input(2 + i)));
  }
  parse(c, request, &c.input(1));
}

void parse_single_example(KernelContext& c) {
  if (c.input(0).rank() != 0) {
    throw InvalidArgumentError(
        cat("Expected serialized to be a scalar, got shape: ", c.input(0).shape()));
  }
  parse(c,
        {c.attr<std::vector<std::string>>("sparse_keys"),
         c.attr<std::vector<std::string>>("dense_keys"),
         {},
         1},
        nullptr);
}

const KernelRegistration kParseV2{{.op = "ParseExampleV2", .run = parse_example_v2}};
const KernelRegistration kParse{{.op = "ParseExample", .run = parse_example}};
const KernelRegistration kParseSingle{{.op = "ParseSingleExample", .run = parse_single_example}};

}  // namespace
}  // namespace tandem::cpu
