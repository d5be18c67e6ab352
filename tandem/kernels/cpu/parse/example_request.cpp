// What the ops that parse Examples ask of the parser.

#include "tandem/kernels/cpu/parse/example_parser.h"

namespace tandem::cpu {

void check_count(const char* what, std::size_t keys, const char* types_name, std::size_t types) {
  if (keys != types) {
    throw InvalidArgumentError(
        cat("Expected len(", what, ") == len(", types_name, ") but got: ", keys, " vs. ", types));
  }
}

std::string key_of(const Array& key) {
  if (key.num_elements() != 1) {
    throw InvalidArgumentError(cat("Every key must be a scalar, got shape ", key.shape()));
  }
  return key.data<std::string>()[0];
}

int parse_examples(KernelContext& c, const Array& serialized, const ExampleRequest& request,
                   const std::vector<PartialShape>& dense_shapes, int num_defaults,
                   const Array* names) {
  // sparse: indices, values, shapes; dense values; ragged values, row splits
  const int num_sparse = static_cast<int>(request.sparse.size());
  const int num_dense = static_cast<int>(request.dense.size());
  const int num_ragged = static_cast<int>(request.ragged.size());
  check_count("dense_keys", request.dense.size(), "dense_types",
              static_cast<std::size_t>(num_defaults));
  check_count("dense_keys", request.dense.size(), "dense_shapes", dense_shapes.size());
  const int all = 3 * num_sparse + num_dense + 2 * num_ragged;
  if (c.num_outputs() < all) {
    throw InvalidArgumentError(
        cat("The numbers of keys (", num_sparse, " sparse, ", num_dense, " dense, ", num_ragged,
            " ragged) and of types do not agree: there are ", c.num_outputs(), " outputs."));
  }
  if (names && names->num_elements() > 0 && !(names->shape() == serialized.shape())) {
    throw InvalidArgumentError(cat("Expected names have the same shape as serialized: name.shape=",
                                   names->shape(), ", serialized.shape=", serialized.shape()));
  }
  ExampleParser parser(c, serialized, names, request.scalar_splits);
  for (int i = 0; i < num_sparse; ++i) {
    const int output = num_sparse + i;
    parser.want({request.sparse[static_cast<std::size_t>(i)],
                 Form::kSparse,
                 c.output_dtype(output),
                 output,
                 {},
                 {},
                 num_sparse});
  }
  for (int i = 0; i < num_dense; ++i) {
    const auto at = static_cast<std::size_t>(i);
    parser.want_dense(request.dense[at], i, dense_shapes[at], c.input(request.first_default + i),
                      3 * num_sparse + i);
  }
  for (int i = 0; i < num_ragged; ++i) {
    const int output = 3 * num_sparse + num_dense + i;
    parser.want({request.ragged[static_cast<std::size_t>(i)],
                 Form::kRagged,
                 c.output_dtype(output),
                 output,
                 {},
                 {},
                 num_ragged});
  }
  parser.run();
  return all;
}

}  // namespace tandem::cpu
