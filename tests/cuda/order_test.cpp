// Results have the same bits whatever order blocks and threads run in: a GPU promises none. Each op
// below runs on a device GPU:0 whose kernels run on the host, from the first thread to the last
// and, in another process, from the last to the first (TANDEM_TEST_CUDA_ORDER).
//
// order_test digests all|atomics prints a line for each op: its name, and a hash of its results.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem {
namespace {

// Floats of many sizes, so that each order of adding them up gives other bits.
Tensor values(const Shape& shape, int seed, DType dtype = DType::kFloat) {
  std::vector<float> all(static_cast<std::size_t>(shape.num_elements()));
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761u + 12345u;
  for (float& value : all) {
    state = state * 1664525u + 1013904223u;
    const float base = static_cast<float>(state >> 8) / static_cast<float>(1u << 23) - 1.0f;
    value = base * static_cast<float>(1u << (state >> 4 & 15));
  }
  const DeviceScope on("/CPU:0");
  const Tensor made = Tensor::from(all, shape);
  return dtype == DType::kFloat ? made : cast(made, dtype);
}

// Numbers from 0 to `end`, each many times.
Tensor indices(std::int64_t count, std::int64_t end) {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < count; ++i)
    all.push_back(static_cast<std::int32_t>(i * i * 7 % 1009 % end));
  const DeviceScope on("/CPU:0");
  return Tensor::from(all, {count});
}

std::uint64_t digest(const std::vector<Tensor>& results) {
  std::uint64_t hash = 14695981039346656037ull;
  const DeviceScope on("/CPU:0");
  for (const Tensor& result : results) {
    const std::vector<double> numbers = cast(result, DType::kDouble).to_vector<double>();
    for (const double number : numbers) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &number, sizeof(bits));
      hash = (hash ^ bits) * 1099511628211ull;
    }
  }
  return hash;
}

void print_digest(const std::string& name, const std::vector<Tensor>& results) {
  std::printf("%s %llu\n", name.c_str(), static_cast<unsigned long long>(digest(results)));
}

void print_op(const std::string& op, const std::vector<Tensor>& inputs, const AttrMap& attrs = {}) {
  print_digest(op, raw_op(op, inputs, attrs));
}

Tensor ints(const std::vector<std::int32_t>& all) {
  const DeviceScope on("/CPU:0");
  return Tensor::from(all, {static_cast<std::int64_t>(all.size())});
}

void print_sums() {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
    const Tensor x = values({7, 300, 11}, 1, dtype);
    for (const auto& axes :
         std::vector<std::vector<std::int32_t>>{{0}, {1}, {2}, {0, 1}, {0, 2}, {0, 1, 2}}) {
      print_op("Sum", {x, ints(axes)});
      print_op("Mean", {x, ints(axes)});
    }
    print_op("Cumsum", {x, ints({1})[0]});
    print_op("BiasAddGrad", {x});
    print_op("Softmax", {values({5, 999}, 2, dtype)});
    print_op("LogSoftmax", {values({5, 999}, 2, dtype)});
    print_op("L2Loss", {x});
  }
}

void print_segments() {
  const Tensor x = values({600, 5}, 3), ids = indices(600, 9), sorted = sort(ids);
  print_op("UnsortedSegmentSum", {x, ids, ints({9})[0]});
  print_op("UnsortedSegmentProd", {x, ids, ints({9})[0]});
  print_op("SegmentSum", {x, sorted});
  print_op("SegmentMean", {x, sorted});
  print_op("SparseSegmentSum", {values({9, 5}, 4), ids, sorted});
  print_op("TensorScatterAdd", {values({9, 5}, 5), reshape(ids, {600, 1}), x});
  print_op("ScatterNd", {reshape(ids, {600, 1}), x, ints({9, 5})});
  print_op("DynamicPartition", {x, indices(600, 3)}, {{"num_partitions", std::int64_t{3}}});
  print_op("Unique", {ids});
  print_op("DenseBincount", {ids, ints({9})[0], values({600}, 6)});
  print_op("DenseBincount", {reshape(ids, {3, 200}), ints({9})[0], values({3, 200}, 6)});
}

void print_images() {
  const Tensor x = values({2, 9, 8, 3}, 7), filter = values({3, 3, 3, 4}, 8);
  AttrMap window{{"padding", "SAME"}};
  window.set("strides", std::vector<std::int64_t>{1, 1, 1, 1});
  const Tensor y = raw_op("Conv2D", {x, filter}, window)[0];
  print_digest("Conv2D", {y});
  print_op("Conv2DBackpropFilter", {x, ints({3, 3, 3, 4}), y}, window);
  print_op("Conv2DBackpropInput", {ints({2, 9, 8, 3}), filter, y}, window);
  const Tensor deep = values({3, 3, 3, 2}, 9);
  const Tensor z = raw_op("DepthwiseConv2dNative", {x, deep}, window)[0];
  print_op("DepthwiseConv2dNativeBackpropFilter", {x, ints({3, 3, 3, 2}), z}, window);
  window.set("ksize", std::vector<std::int64_t>{1, 3, 3, 1});
  const Tensor pooled = raw_op("MaxPool", {x}, window)[0];
  print_op("MaxPoolGrad", {x, pooled, values({2, 9, 8, 3}, 10)}, window);
  print_op("AvgPoolGrad", {ints({2, 9, 8, 3}), pooled}, window);
  print_op("ResizeBilinearGrad", {values({2, 19, 17, 3}, 11), x});
  print_op("FusedBatchNormV3",
           {x, values({3}, 12), values({3}, 13), values({0}, 1), values({0}, 1)});
  const Tensor boxes = values({40, 4}, 14) / 65536.0f + 0.3f;
  print_op("CropAndResizeGradImage",
           {values({40, 5, 5, 3}, 15), boxes, indices(40, 2), ints({2, 9, 8, 3})},
           {{"T", DType::kFloat}});
  print_op("CropAndResizeGradBoxes", {values({40, 5, 5, 3}, 15), x, boxes, indices(40, 2)});
}

// Adds up in the order in which threads come, unless results must be the same in every run.
void print_atomics() {
  config::enable_op_determinism(false);
  const DeviceScope on("/GPU:0");
  print_op("CropAndResizeGradImage",
           {values({40, 5, 5, 3}, 15), values({40, 4}, 14) / 65536.0f + 0.3f, indices(40, 2),
            ints({2, 9, 8, 3})},
           {{"T", DType::kFloat}});
}

void print_products() {
  const Tensor a = values({40, 130}, 16), b = values({130, 50}, 17);
  print_op("MatMul", {a, b});
  print_op("Einsum", {values({3, 4, 70}, 18), values({3, 70, 5}, 19)},
           {{"equation", "bij,bjk->bik"}});
  print_op("Einsum", {values({3, 4, 70}, 18), values({4, 70}, 19)}, {{"equation", "bij,ij->b"}});
  print_op("TopKV2", {values({4, 500}, 20), ints({9})[0]});
  print_digest("sort", {sort(values({4, 500}, 20))});
}

// Trees with sums, as far as there is NVRTC, and the rows of an embedding.
void print_training(const char* optimizer) {
  keras::Sequential model{
      keras::Input({6}, {.dtype = int32}),
      keras::Embedding(9, 8, {.embeddings_initializer = keras::initializers::GlorotUniform(1)}),
      keras::LayerNormalization(),
      keras::Flatten(),
      keras::Dense(
          12, {.activation = "gelu", .kernel_initializer = keras::initializers::GlorotUniform(2)}),
      keras::Dense(3, {.activation = "softmax",
                       .kernel_initializer = keras::initializers::GlorotUniform(3)})};
  model.compile({.optimizer = optimizer, .loss = "sparse_categorical_crossentropy"});
  for (int i = 0; i < 4; ++i)
    model.train_on_batch(reshape(indices(60, 9), {10, 6}), indices(10, 3));
  std::vector<Tensor> weights;
  for (const Variable& weight : model.weights()) weights.push_back(weight.read_value());
  print_digest(std::string("training by ") + optimizer, weights);
}

int print_digests(const std::string& of) {
  if (of == "atomics") {
    print_atomics();
    return 0;
  }
  config::enable_op_determinism();
  config::set_soft_device_placement(false);
  {
    const DeviceScope on("/GPU:0");
    print_sums();
    print_segments();
    print_images();
    print_products();
  }
  config::set_soft_device_placement(true);
  // The last one takes norms of all variables, and does so in few launches.
  for (const char* optimizer : {"adam", "lamb"}) print_training(optimizer);
  return 0;
}

// What a process of its own prints that runs in the order.
std::string digests(const char* order, const char* of) {
  const std::string command = std::string("TANDEM_TEST_CUDA_ORDER=") + order + " /proc/" +
                              std::to_string(getpid()) + "/exe digests " + of;
  FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) return "no process";
  std::string text;
  char part[4096];
  for (std::size_t n; (n = std::fread(part, 1, sizeof(part), pipe)) > 0;) text.append(part, n);
  return pclose(pipe) == 0 ? text : text + "and ends with an error";
}

TEST(OrderOfThreads, DoesNotMatter) {
  const std::string forward = digests("forward", "all"), reversed = digests("reversed", "all");
  EXPECT_GT(forward.size(), 1000u) << forward;
  EXPECT_EQ(forward, reversed);
}

// What depends on it does show.
TEST(OrderOfThreads, MattersToAtomics) {
  EXPECT_NE(digests("forward", "atomics"), digests("reversed", "atomics"));
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "digests") == 0) return tandem::print_digests(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
