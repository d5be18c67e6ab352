// Training steps on batches that stay in the GPU's memory (ResNet50, a stack of transformer
// layers), and fit on a dataset (an MLP). bench/peers/torch_gpu.py has the same networks, with
// weights that both sides make by the layers' names.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/common/samples.h"
#include "bench/ours/gpu/rows.h"

namespace td = tandem;
using namespace td::keras;

namespace bench {
namespace {

constexpr std::uint64_t kImagesSeed = 21, kSequenceSeed = 22;
constexpr double kBlockScale = 0.2;  // of what a block of a ResNet adds at first
constexpr double kNormEpsilon = 1.001e-5;

// FNV-1a, which is quick to write in any language.
std::uint32_t hash(const std::string& text) {
  std::uint32_t h = 2166136261u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

// Kernels by He's rule for uniform values, from the layer's name and the number of the weight.
void set_weights(const Model& model) {
  for (const Layer& layer : model.layers()) {
    const std::vector<td::Variable> weights = layer.weights();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const td::Shape shape = weights[i].shape().to_shape();
      if (shape.rank() < 2) continue;
      // Heads and their sizes are the second and third axis before attention, the first two behind.
      const bool heads_first = layer.class_name() == "MultiHeadAttention" && i == 6;
      std::int64_t fan_in = shape.dim(0);
      if (heads_first || shape.rank() == 4) fan_in *= shape.dim(1);
      if (shape.rank() == 4) fan_in *= shape.dim(2);
      const float limit = static_cast<float>(std::sqrt(6.0 / static_cast<double>(fan_in)));
      std::vector<float> values = tiled(shape.num_elements(), hash(layer.name()) + i);
      for (float& v : values) v = (v - 0.5f) * 2 * limit;
      weights[i].assign(td::Tensor::from(values, shape));
    }
  }
}

KerasTensor convolution(const KerasTensor& x, std::int64_t filters, int size, int strides,
                        const std::string& name) {
  return Conv2D(filters, size, {.strides = strides, .name = name + "_conv"})(x);
}

KerasTensor normalization(const KerasTensor& x, const std::string& name, double scale = 1) {
  return BatchNormalization({.epsilon = kNormEpsilon,
                             .gamma_initializer = initializers::Constant(scale),
                             .name = name + "_bn"})(x);
}

KerasTensor relu(const KerasTensor& x) { return Activation("relu")(x); }

KerasTensor block(const KerasTensor& x, std::int64_t filters, int strides, bool widens,
                  const std::string& name) {
  KerasTensor side = x;
  if (widens)
    side = normalization(convolution(x, 4 * filters, 1, strides, name + "_0"), name + "_0");
  KerasTensor y =
      relu(normalization(convolution(x, filters, 1, strides, name + "_1"), name + "_1"));
  y = ZeroPadding2D(1)(y);
  y = relu(normalization(convolution(y, filters, 3, 1, name + "_2"), name + "_2"));
  y = normalization(convolution(y, 4 * filters, 1, 1, name + "_3"), name + "_3", kBlockScale);
  return relu(Add()({side, y}));
}

// ResNet50 of Keras, of so many filters and blocks; logits, which are float.
Model resnet(const GpuSizes& sizes) {
  const KerasTensor images = Input({sizes.image_side, sizes.image_side, 3});
  KerasTensor x = convolution(ZeroPadding2D(3)(images), sizes.filters, 7, 2, "conv1");
  x = ZeroPadding2D(1)(relu(normalization(x, "conv1")));
  x = MaxPooling2D({.pool_size = 3, .strides = 2})(x);
  std::int64_t filters = sizes.filters;
  for (std::size_t stage = 0; stage < sizes.blocks.size(); ++stage, filters *= 2) {
    for (int i = 0; i < sizes.blocks[stage]; ++i) {
      const std::string name =
          "conv" + std::to_string(stage + 2) + "_block" + std::to_string(i + 1);
      x = block(x, filters, i == 0 && stage > 0 ? 2 : 1, i == 0, name);
    }
  }
  x = GlobalAveragePooling2D()(x);
  x = Dense(sizes.classes, {.name = "predictions", .dtype = "float32"})(x);
  return Model(images, x);
}

// Layers as PyTorch's TransformerEncoderLayer has them: normalized behind each sum, no dropout.
Model transformer(const GpuSizes& sizes) {
  const KerasTensor input = Input({sizes.tokens, sizes.width});
  KerasTensor x = input;
  for (int i = 0; i < sizes.layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    const KerasTensor attended = MultiHeadAttention(sizes.heads, sizes.width / sizes.heads,
                                                    {.name = name + "_attention"})(x, x);
    x = LayerNormalization({.epsilon = 1e-5})(Add()({x, attended}));
    const KerasTensor inner =
        Dense(4 * sizes.width, {.activation = "gelu", .name = name + "_inner"})(x);
    const KerasTensor outer = Dense(sizes.width, {.name = name + "_outer"})(inner);
    x = LayerNormalization({.epsilon = 1e-5})(Add()({x, outer}));
  }
  return Model(input, x);
}

// A step that leaves its loss in the GPU's memory.
class Training {
 public:
  using LossOf = std::function<td::Tensor(const td::Tensor& target, const td::Tensor& output)>;

  Training(const Model& model, const Optimizer& optimizer, const LossOf& loss_of,
           const td::Tensor& x, const td::Tensor& target) {
    set_weights(model);
    optimizer.build(model.trainable_weights());
    const auto step = td::function([=](td::Tensor inputs, td::Tensor targets) {
      td::GradientTape tape;
      const td::Tensor loss = loss_of(targets, model(inputs, {.training = true}));
      optimizer.apply(tape.gradient(loss, model.trainable_weights()), model.trainable_weights());
      return loss;
    });
    step_ = [=] { return step(x, target); };
  }

  td::Tensor step() const { return step_(); }

 private:
  std::function<td::Tensor()> step_;
};

Training resnet_training() {
  const GpuSizes& sizes = gpu_sizes();
  mixed_precision::set_global_policy("mixed_bfloat16");
  const Model model = resnet(sizes);
  mixed_precision::set_global_policy("float32");
  const td::Shape shape{sizes.images, sizes.image_side, sizes.image_side, 3};
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < sizes.images; ++i)
    labels.push_back(static_cast<std::int32_t>(i * 37 % sizes.classes));
  const losses::SparseCategoricalCrossentropy loss({.from_logits = true});
  return {
      model, optimizers::SGD({.learning_rate = 1e-3, .momentum = 0.9}),
      [loss](const td::Tensor& target, const td::Tensor& output) { return loss(target, output); },
      td::identity(td::Tensor::from(tiled(shape.num_elements(), kImagesSeed), shape)),
      td::identity(td::Tensor::from(labels))};
}

// Its target is its input, which the residual sums carry to the end.
Training transformer_training() {
  const GpuSizes& sizes = gpu_sizes();
  mixed_precision::set_global_policy("mixed_bfloat16");
  const Model model = transformer(sizes);
  mixed_precision::set_global_policy("float32");
  const td::Shape shape{sizes.sequences, sizes.tokens, sizes.width};
  const td::Tensor x =
      td::identity(td::Tensor::from(tiled(shape.num_elements(), kSequenceSeed), shape));
  return {model, optimizers::Adam({.learning_rate = 1e-4}),
          [](const td::Tensor& target, const td::Tensor& output) {
            return td::reduce_mean(td::square(td::cast(output, td::float32) - target));
          },
          x, x};
}

// The model of the row measured last: two large ones need not fit in a GPU's memory.
class Trainings {
 public:
  Answer measure(Training (*make)(), double units, bool per_second) {
    const td::DeviceScope scope("/GPU:0");
    if (make != make_) {
      held_.reset();
      make_ = nullptr;
      held_ = make();
      first_loss_ = static_cast<double>(held_->step().item<float>());
      if (gpu_sizes().small) expect_close("the loss", first_loss_, loss_on_cpu(make), 0.02);
      make_ = make;
    }
    td::Tensor loss;
    const double seconds = seconds_per_gpu_step([&](int steps) {
      for (int i = 0; i < steps; ++i) loss = held_->step();
      loss.synchronize();
    });
    Answer answer;
    answer.value = per_second ? units / seconds : units * seconds;
    answer.check = first_loss_;
    answer.loss = static_cast<double>(loss.item<float>());
    if (!std::isfinite(answer.loss)) throw std::runtime_error("the loss is not finite");
    return answer;
  }

 private:
  static double loss_on_cpu(Training (*make)()) {
    const td::DeviceScope scope("/CPU:0");
    return static_cast<double>(make().step().item<float>());
  }

  Training (*make_)() = nullptr;
  std::optional<Training> held_;
  double first_loss_ = 0;
};

Answer mlp() {
  const std::int64_t count = gpu_sizes().mlp_samples;
  static const Samples made = samples(count);
  static const Sequential model = [] {
    Sequential m{Input({kPixels}), Dense(kMlpHidden, {.activation = "relu"}),
                 Dense(kClasses, {.activation = "softmax"})};
    m.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy"});
    return m;
  }();
  const td::Tensor x = td::Tensor::from(made.images, {count, kPixels});
  const auto data = td::data::from_tensor_slices({x, td::Tensor::from(made.labels)})
                        .shuffle(count)
                        .batch(kMlpBatch);
  double loss = 0;
  const double epoch = seconds_per_gpu_step([&](int epochs) {
    loss = model.fit(data, {.epochs = epochs, .verbose = Verbose::kSilent})["loss"].back();
  });
  Answer answer;
  answer.value = static_cast<double>(count / kMlpBatch) / epoch;
  answer.loss = loss;
  if (!(loss < (gpu_sizes().small ? 3.0 : kLearnt)))
    throw std::runtime_error("the network does not learn: its loss is " + std::to_string(loss));
  return answer;
}

}  // namespace

void add_training(Rows& rows) {
  const auto held = std::make_shared<Trainings>();
  rows["resnet50_training"] = [held] {
    return held->measure(resnet_training, static_cast<double>(gpu_sizes().images), true);
  };
  rows["transformer_training"] = [held] { return held->measure(transformer_training, 1e3, false); };
  rows["mlp"] = mlp;
}

}  // namespace bench
