// A small transformer that learns to write sequences of digits backwards: after "3 1 4 ." it should
// go on with "4 1 3". Each position may look at earlier ones only.
#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

namespace {

constexpr int kDigits = 5;            // in a sequence
constexpr int kSeparator = 10;        // the token after it
constexpr int kTokens = 11;           // 0 to 9 and the separator
constexpr int kLength = 2 * kDigits;  // what the model reads: digits, separator, answer
constexpr int kWidth = 32;

struct Examples {
  td::Tensor tokens;   // int32 [n, kLength]
  td::Tensor answers;  // int32 [n, kLength]: the token that follows each
  td::Tensor weights;  // float [n, kLength]: 1 where the answer can be known
};

Examples make_examples(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens, answers;
  std::vector<float> weights;
  for (int n = 0; n < count; ++n) {
    std::vector<std::int32_t> text;
    for (int i = 0; i < kDigits; ++i) text.push_back(static_cast<std::int32_t>(random() % 10));
    text.push_back(kSeparator);
    for (int i = kDigits - 1; i >= 0; --i) text.push_back(text[static_cast<std::size_t>(i)]);
    tokens.insert(tokens.end(), text.begin(), text.end() - 1);
    answers.insert(answers.end(), text.begin() + 1, text.end());
    for (int i = 0; i < kLength; ++i) weights.push_back(i >= kDigits ? 1.0f : 0.0f);
  }
  const td::Shape shape{count, kLength};
  return {td::Tensor::from(tokens, shape), td::Tensor::from(answers, shape),
          td::Tensor::from(weights, shape)};
}

// Position embedding: a learned vector is added to each position.
class Positions final : public LayerImpl {
 public:
  Positions() : LayerImpl("Positions") {}
  void build(const td::PartialShape& input) override {
    table_ = add_weight("table", {input.dim(1), input.dim(2)}, {.initializer = "uniform"});
  }
  td::Tensor call(const td::Tensor& x, bool) override { return x + table_; }

 private:
  td::Variable table_;
};

KerasTensor block(const KerasTensor& x) {
  const KerasTensor attended = MultiHeadAttention(4, kWidth / 4)(x, x, {.use_causal_mask = true});
  const KerasTensor y = LayerNormalization()(Add()({x, attended}));
  const KerasTensor inner = Dense(4 * kWidth, {.activation = "gelu"})(y);
  return LayerNormalization()(Add()({y, Dense(kWidth)(inner)}));
}

Model make_model() {
  const KerasTensor tokens = Input({kLength}, {.dtype = td::int32, .name = "tokens"});
  KerasTensor x = make_layer<Positions>()(Embedding(kTokens, kWidth)(tokens));
  x = block(block(x));
  return Model(tokens, Dense(kTokens, {.activation = "softmax"})(x), "reverser");
}

}  // namespace

int main() try {
  utils::set_random_seed(11);
  const Examples train = make_examples(4096, 1);
  const Examples test = make_examples(256, 2);

  const Model model = make_model();
  model.summary();
  model.compile({
      .optimizer = optimizers::Adam({.learning_rate = 0.003}),
      .loss = "sparse_categorical_crossentropy",
      .weighted_metrics = {"accuracy"},
  });
  model.fit(train.tokens, train.answers,
            {.batch_size = 64,
             .epochs = 8,
             .callbacks = {callbacks::EarlyStopping({.monitor = "accuracy", .patience = 3})},
             .validation_data = {test.tokens, test.answers, test.weights},
             .sample_weight = train.weights});

  const Logs result = model.evaluate(test.tokens, test.answers,
                                     {.verbose = Verbose::kSilent, .sample_weight = test.weights});
  std::cout << "of the answers on new sequences are right: " << result["accuracy"] * 100 << " %\n";
  return result["accuracy"] > 0.95 ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << "transformer: " << error.what() << "\n";
  return 1;
}
