// Trains a network on handwritten digits: all that is needed, in 40 lines.
#include <iostream>

#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

int main() try {
  // 1,797 images of 8x8 pixels, each time in the same order; a fifth is kept for the test.
  const auto [train, test] = td::data::digits("examples/data/digits.csv.gz").split(0.8);

  utils::set_random_seed(7);
  const Sequential model{
      Input({8, 8, 1}),
      Conv2D(32, 3, {.padding = "same", .activation = "relu"}),
      MaxPooling2D(),
      Conv2D(64, 3, {.padding = "same", .activation = "relu"}),
      Flatten(),
      Dropout(0.3),
      Dense(10, {.activation = "softmax"}),
  };
  model.compile({
      .optimizer = "adam",
      .loss = "sparse_categorical_crossentropy",
      .metrics = {"accuracy"},
  });
  model.fit(train.shuffle(1024).batch(32),
            {.epochs = 5, .verbose = Verbose::kLinePerEpoch, .validation_data = test.batch(256)});

  // What does it make of the first digit of the test?
  const td::data::Element first = test.batch(1).iterator().next();
  const td::Tensor probabilities = model.predict_on_batch(first[0]);
  std::cout << "label " << first[1] << ", probabilities " << probabilities << "\n";

  const Logs result = model.evaluate(test.batch(256), {.verbose = Verbose::kSilent});
  std::cout << "test " << result << "\n";
  return result["accuracy"] > 0.95 ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << "digits: " << error.what() << "\n";
  return 1;
}
