// The ops by which graphs of TensorFlow save and restore.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_decl.h"
#include "tandem/io/internal/bundle_format.h"
#include "tandem/io/tensor_bundle.h"

namespace tandem::io {
namespace {

// ---- Declarations. ----

void names_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.require_rank(1, 1);
  c.require_rank(2, 1);
}

// A slice that is spelled out gives the shape of what is restored.
void restore_shape(InferenceContext& c) {
  names_shape(c);
  const Array* slices = c.input_value(2);
  if (slices == nullptr || slices->num_elements() != c.num_outputs()) return;
  for (int i = 0; i < c.num_outputs(); ++i) {
    const std::string& text = slices->data<std::string>()[i];
    if (text.empty()) continue;
    const ShapeAndSlice spec = parse_shape_and_slice(text);
    std::vector<std::int64_t> dims;
    for (const auto& extent : resolve(spec.slice, spec.shape).extents)
      dims.push_back(extent.length);
    c.set_output(i, PartialShape(std::move(dims)));
  }
}

void merge_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 0);
}

void name_shape(InferenceContext& c) {
  for (int i = 0; i < 3; ++i) c.require_rank(i, 0);
  c.set_output(0, PartialShape(std::vector<std::int64_t>{}));
}

const OpRegistration kSave{{.name = "SaveV2",
                            .inputs = "prefix: string, tensor_names: string, "
                                      "shape_and_slices: string, tensors: dtypes",
                            .attrs = "dtypes: list(type) >= 1",
                            .shape = names_shape,
                            .gradient = not_differentiable,
                            .traits = {.stateful = true, .host_inputs = 0b111},
                            .doc = "Writes a checkpoint; a tensor may be a slice (\"4 2 0,2:-\") "
                                   "of a larger one."}};
const OpRegistration kRestore{
    {.name = "RestoreV2",
     .inputs = "prefix: string, tensor_names: string, shape_and_slices: string",
     .outputs = "tensors: dtypes",
     .attrs = "dtypes: list(type) >= 1",
     .shape = restore_shape,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .reads_only = true, .host_inputs = 0b111},
     .doc = "Reads tensors, or slices of them, from a checkpoint."}};
const OpRegistration kMerge{
    {.name = "MergeV2Checkpoints",
     .inputs = "checkpoint_prefixes: string, destination_prefix: string",
     .attrs = "delete_old_dirs: bool = true; allow_missing_files: bool = false",
     .shape = merge_shape,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .host_inputs = 0b11},
     .doc = "Makes one checkpoint of several by renaming their files."}};
const OpRegistration kShardedFilename{{.name = "ShardedFilename",
                                       .inputs = "basename: string, shard: int32, "
                                                 "num_shards: int32",
                                       .outputs = "filename: string",
                                       .shape = name_shape,
                                       .gradient = not_differentiable,
                                       .doc = "\"basename-00001-of-00002\"."}};

// ---- Kernels. ----

struct Request {
  std::string prefix;
  const std::string* names;
  const std::string* slices;
  std::int64_t count;
};

Request request(KernelContext& c, std::int64_t wanted, const char* what) {
  const Array &prefix = c.input(0), &names = c.input(1), &slices = c.input(2);
  if (prefix.num_elements() != 1) {
    throw InvalidArgumentError(
        cat("Input prefix should have a single element, got ", prefix.num_elements(), " instead."));
  }
  if (names.rank() != 1 || slices.rank() != 1) {
    throw InvalidArgumentError(
        cat("Input tensor_names and shape_and_slices should be an 1-D tensors, got ", names.shape(),
            " and ", slices.shape(), " instead."));
  }
  if (names.num_elements() != slices.num_elements()) {
    throw InvalidArgumentError(
        cat("tensor_names and shape_and_slices have different number of elements: ",
            names.num_elements(), " vs. ", slices.num_elements()));
  }
  if (names.num_elements() != wanted) {
    throw InvalidArgumentError(
        cat("Got ", names.num_elements(), " tensor names but ", wanted, what));
  }
  return {*prefix.data<std::string>(), names.data<std::string>(), slices.data<std::string>(),
          wanted};
}

void save(KernelContext& c) {
  const Request r = request(c, c.num_inputs() - 3, " tensors.");
  TensorBundleWriter writer(r.prefix);
  for (std::int64_t i = 0; i < r.count; ++i) {
    const Array& value = c.input(static_cast<int>(i) + 3);
    if (r.slices[i].empty()) {
      writer.add(r.names[i], value);
    } else {
      const ShapeAndSlice spec = parse_shape_and_slice(r.slices[i]);
      writer.add_slice(r.names[i], spec.shape, spec.slice, value);
    }
  }
  writer.finish();
}

void restore(KernelContext& c) {
  const Request r = request(c, c.num_outputs(), " expected dtypes.");
  const TensorBundleReader reader(r.prefix);
  std::string wrong;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const DType wanted = c.output_dtype(static_cast<int>(i));
    const DType stored = reader.dtype(r.names[i]);
    if (stored != wanted) {
      wrong += cat(wrong.empty() ? "" : "\n", "tensor_name = ", r.names[i], "; expected dtype ",
                   wanted, " does not equal original dtype ", stored);
    }
  }
  if (!wrong.empty()) throw InvalidArgumentError(wrong);
  for (std::int64_t i = 0; i < r.count; ++i) {
    const auto output = static_cast<int>(i);
    if (r.slices[i].empty()) {
      c.set_output(output, reader.read(r.names[i]));
      continue;
    }
    const ShapeAndSlice spec = parse_shape_and_slice(r.slices[i]);
    const Shape stored = reader.shape(r.names[i]);
    if (!(spec.shape == stored)) {
      throw InvalidArgumentError(cat("tensor_name = ", r.names[i],
                                     "; shape in shape_and_slice spec ", spec.shape,
                                     " does not match the shape stored in checkpoint: ", stored));
    }
    c.set_output(output, reader.read_slice(r.names[i], spec.slice));
  }
}

void merge(KernelContext& c) {
  const Array &prefixes = c.input(0), &destination = c.input(1);
  if (prefixes.rank() != 1) {
    throw InvalidArgumentError(cat("Input checkpoint_prefixes should be an 1-D tensor, got ",
                                   prefixes.shape(), " instead."));
  }
  if (destination.rank() != 0) {
    throw InvalidArgumentError(cat("Input destination_prefix should be a scalar tensor, got ",
                                   destination.shape(), " instead."));
  }
  const auto values = prefixes.values<std::string>();
  merge_tensor_bundles({values.begin(), values.end()}, *destination.data<std::string>(),
                       {.delete_old_folders = c.attr<bool>("delete_old_dirs"),
                        .allow_missing = c.attr<bool>("allow_missing_files")});
}

void sharded_filename(KernelContext& c) {
  constexpr const char* kNames[] = {"basename", "shard", "num_shards"};
  for (int i = 0; i < 3; ++i) {
    if (c.input(i).rank() != 0) {
      throw InvalidArgumentError(
          cat(kNames[i], " must be a scalar, got shape ", c.input(i).shape()));
    }
  }
  c.allocate_output(0, Shape{}).data<std::string>()[0] =
      sharded_name(*c.input(0).data<std::string>(), *c.input(1).data<std::int32_t>(),
                   *c.input(2).data<std::int32_t>());
}

const KernelRegistration kSaveKernel{{.op = "SaveV2", .run = save}};
const KernelRegistration kRestoreKernel{{.op = "RestoreV2", .run = restore}};
const KernelRegistration kMergeKernel{{.op = "MergeV2Checkpoints", .run = merge}};
const KernelRegistration kShardedFilenameKernel{{.op = "ShardedFilename", .run = sharded_filename}};

}  // namespace
}  // namespace tandem::io
