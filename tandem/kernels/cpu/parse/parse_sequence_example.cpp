// ParseSequenceExampleV2, ParseSequenceExample and ParseSingleSequenceExample. The context is read
// as an Example's features are.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/parse/example_parser.h"
#include "tandem/kernels/cpu/parse/sequence_parser.h"

namespace tandem::cpu {
namespace {

// What is asked for, however an op says it.
struct SequenceRequest {
  ExampleRequest context;
  int context_defaults = 0;
  std::vector<std::string> sparse, dense, ragged;
  std::vector<bool> assumed_empty;  // of the dense ones
  bool lengths = true;
};

int size(const std::vector<std::string>& keys) { return static_cast<int>(keys.size()); }

void parse(KernelContext& c, const SequenceRequest& request, const Array* names) {
  const Array& serialized = c.input(0);
  if (names && names->num_elements() > 0 && !(names->shape() == serialized.shape())) {
    throw InvalidArgumentError(cat("Expected debug_name to have the shape of serialized, ",
                                   serialized.shape(), ", got ", names->shape()));
  }
  const auto& shapes = c.attr<std::vector<PartialShape>>("feature_list_dense_shapes");
  const int sparse = size(request.sparse), dense = size(request.dense);
  const int ragged = size(request.ragged);
  check_count("feature_list_dense_keys", request.dense.size(), "feature_list_dense_shapes",
              shapes.size());
  const int context = 3 * size(request.context.sparse) + size(request.context.dense) +
                      2 * size(request.context.ragged);
  if (c.num_outputs() != context + 3 * sparse + (request.lengths ? 2 : 1) * dense + 3 * ragged) {
    throw InvalidArgumentError(cat("The numbers of keys and of types do not agree: there are ",
                                   c.num_outputs(), " outputs."));
  }
  parse_examples(c, serialized, request.context,
                 c.attr<std::vector<PartialShape>>("context_dense_shapes"),
                 request.context_defaults, names);
  SequenceParser parser(c, serialized, names);
  parser.reserve(request.sparse.size() + request.dense.size() + request.ragged.size());
  const int values = context + sparse, dense_values = context + 3 * sparse;
  const int ragged_values = dense_values + (request.lengths ? 2 : 1) * dense;
  std::vector<const Steps*> steps;
  for (int i = 0; i < sparse + dense + ragged; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const int k = i - sparse, r = k - dense;
    steps.push_back(k < 0   ? &parser.want(request.sparse[at], c.output_dtype(values + i))
                    : r < 0 ? &parser.want(request.dense[static_cast<std::size_t>(k)],
                                           c.output_dtype(dense_values + k))
                            : &parser.want(request.ragged[static_cast<std::size_t>(r)],
                                           c.output_dtype(ragged_values + r)));
  }
  parser.find();
  auto next = steps.begin();
  for (int i = 0; i < sparse; ++i) parser.put_sparse(**next++, values + i, sparse);
  for (int i = 0; i < dense; ++i) {
    const auto at = static_cast<std::size_t>(i);
    parser.put_dense(**next++, shapes[at], request.assumed_empty[at], dense_values + i,
                     request.lengths ? dense_values + dense + i : -1);
  }
  for (int i = 0; i < ragged; ++i) parser.put_ragged(**next++, ragged_values + i, ragged);
}

// ---- The ops. ----

void check_rank(const Array& serialized, int most) {
  if (serialized.rank() <= most) return;
  throw InvalidArgumentError(cat("Expected serialized to be a ",
                                 most == 0 ? "scalar" : "scalar or vector",
                                 ", got shape: ", serialized.shape()));
}

void assume_empty(const std::vector<std::string>& keys, SequenceRequest& request) {
  for (const std::string& key : request.dense) {
    request.assumed_empty.push_back(std::find(keys.begin(), keys.end(), key) != keys.end());
  }
}

void parse_v2(KernelContext& c) {
  check_rank(c.input(0), 1);
  SequenceRequest request;
  request.context = {strings_of(c.input(2)), strings_of(c.input(3)), strings_of(c.input(4)), 9,
                     true};
  request.context_defaults = c.num_inputs() - 9;
  request.sparse = strings_of(c.input(5));
  request.dense = strings_of(c.input(6));
  request.ragged = strings_of(c.input(7));
  const auto assumed = c.input(8).values<bool>();
  check_count("feature_list_dense_keys", request.dense.size(),
              "feature_list_dense_missing_assumed_empty", assumed.size());
  request.assumed_empty.assign(assumed.begin(), assumed.end());
  parse(c, request, &c.input(1));
}

void parse_v1(KernelContext& c) {
  check_rank(c.input(0), 1);
  using Strings = std::vector<std::string>;
  SequenceRequest request;
  request.context = {
      c.attr<Strings>("context_sparse_keys"), c.attr<Strings>("context_dense_keys"), {}, 2};
  request.context_defaults = c.num_inputs() - 2;
  request.sparse = c.attr<Strings>("feature_list_sparse_keys");
  request.dense = c.attr<Strings>("feature_list_dense_keys");
  assume_empty(c.attr<Strings>("feature_list_dense_missing_assumed_empty"), request);
  parse(c, request, &c.input(1));
}

void parse_single(KernelContext& c) {
  check_rank(c.input(0), 0);
  SequenceRequest request;
  request.lengths = false;
  int at = 2;
  const auto keys = [&](const char* count, std::vector<std::string>& to) {
    for (std::int64_t i = c.attr<std::int64_t>(count); i > 0; --i)
      to.push_back(key_of(c.input(at++)));
  };
  keys("Ncontext_sparse", request.context.sparse);
  keys("Ncontext_dense", request.context.dense);
  keys("Nfeature_list_sparse", request.sparse);
  keys("Nfeature_list_dense", request.dense);
  request.context.first_default = at;
  request.context_defaults = c.num_inputs() - 1 - at;
  assume_empty(strings_of(c.input(1)), request);
  const Array& name = c.input(c.num_inputs() - 1);
  if (name.num_elements() > 1) {
    throw InvalidArgumentError(cat("debug_name must be a scalar, got shape ", name.shape()));
  }
  parse(c, request, name.rank() == 0 ? &name : nullptr);
}

const KernelRegistration kV2{{.op = "ParseSequenceExampleV2", .run = parse_v2}};
const KernelRegistration kV1{{.op = "ParseSequenceExample", .run = parse_v1}};
const KernelRegistration kSingle{{.op = "ParseSingleSequenceExample", .run = parse_single}};

}  // namespace
}  // namespace tandem::cpu
