// A training loop of one's own: a tape and an optimizer inside a traced function, in which every
// step is one graph.
#include <iostream>

#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

int main() try {
  utils::set_random_seed(5);
  const auto [train, test] = td::data::digits("examples/data/digits.csv.gz").split(0.8);

  const Sequential model{Input({8, 8, 1}), Flatten(), Dense(64, {.activation = "relu"}),
                         Dropout(0.2), Dense(10)};
  const losses::SparseCategoricalCrossentropy loss_of({.from_logits = true});
  const optimizers::Adam optimizer({
      .learning_rate = schedules::ExponentialDecay(
          {.initial_learning_rate = 0.005, .decay_steps = 200, .decay_rate = 0.7}),
      .clipnorm = 1.0,
  });
  const metrics::Mean mean_loss;
  const metrics::SparseCategoricalAccuracy accuracy;

  // Variables must exist before a function is traced that uses them.
  const std::vector<td::Variable> weights = model.trainable_weights();
  optimizer.build(weights);

  const auto train_step = td::function([&](td::Tensor images, td::Tensor labels) {
    td::GradientTape tape;
    const td::Tensor logits = model(images, {.training = true});
    const td::Tensor loss = loss_of(labels, logits);
    optimizer.apply(tape.gradient(loss, weights), weights);
    mean_loss.update_state(loss);
    accuracy.update_state(labels, logits);
  });
  const auto test_step = td::function(
      [&](td::Tensor images, td::Tensor labels) { accuracy.update_state(labels, model(images)); });

  float test_accuracy = 0;
  for (int epoch = 1; epoch <= 10; ++epoch) {
    mean_loss.reset_state();
    accuracy.reset_state();
    for (const auto& [images, labels] : train.shuffle(1024).batch(32).tuples<2>()) {
      train_step(images, labels);
    }
    std::cout << "epoch " << epoch << ": loss " << mean_loss.result() << ", accuracy "
              << accuracy.result();

    accuracy.reset_state();
    for (const auto& [images, labels] : test.batch(256).tuples<2>()) test_step(images, labels);
    test_accuracy = accuracy.result().item<float>();
    std::cout << ", test accuracy " << test_accuracy << "\n";
  }
  std::cout << "traced " << train_step.num_traces() << " times in " << optimizer.iterations()
            << " steps; learning rate now " << optimizer.learning_rate() << "\n";
  return test_accuracy > 0.93f ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << "custom_training_loop: " << error.what() << "\n";
  return 1;
}
