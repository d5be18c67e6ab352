// A training that survives its process: it is started, killed while it runs, started again, and
// ends with the same weights to the bit as one that nothing happened to. TensorBoard shows the
// training as one: `tensorboard --logdir FOLDER/logs`, at any time.
//
// usage: train_and_resume | train_and_resume --train FOLDER
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <thread>

#include "tandem/io/event_file.h"
#include "tandem/keras/tensor_board.h"
#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

namespace {

constexpr int kEpochs = 4;

Sequential make_model() {
  utils::set_random_seed(7);
  Sequential model{
      Input({8, 8, 1}), Conv2D(8, 3, {.activation = "relu"}), BatchNormalization(), Flatten(),
      Dropout(0.3),     Dense(10, {.activation = "softmax"}),
  };
  model.compile({
      .optimizer = "adam",
      .loss = "sparse_categorical_crossentropy",
      .metrics = {"accuracy"},
  });
  return model;
}

// What the user writes: the one line that is there for interruptions is the callback.
int train(const std::string& folder) {
  const Sequential model = make_model();
  const auto dataset =
      td::data::digits("examples/data/digits.csv.gz").shuffle(500).batch(32).prefetch(2);
  model.fit(dataset,
            {.epochs = kEpochs,
             .verbose = Verbose::kSilent,
             .callbacks = {callbacks::TensorBoard({.log_dir = folder + "/logs"}),
                           callbacks::BackupAndRestore(folder + "/backup",
                                                       {.save_freq = 5, .enable_async = true})}});
  model.save_weights(folder + "/final", {.optimizer = true});
  return 0;
}

pid_t start(const char* program, const std::string& folder) {
  const pid_t process = fork();
  if (process == 0) {
    execl(program, program, "--train", folder.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  return process;
}

// The number of the newest backup in a folder, 0 where there is none.
std::int64_t backups(const std::string& folder) {
  const auto latest = td::train::latest_checkpoint(folder + "/backup");
  return latest ? std::stoll(latest->substr(latest->rfind('-') + 1)) : 0;
}

// The epochs whose loss TensorBoard shows, from the files of all processes.
std::set<std::int64_t> epochs_shown(const std::string& folder) {
  std::set<std::int64_t> epochs;
  for (const auto& file : std::filesystem::directory_iterator(folder + "/logs/train")) {
    if (!file.is_regular_file()) continue;
    td::io::EventFileReader events(file.path());
    while (const auto event = events.next()) {
      for (const td::io::EventValue& value : event->values)
        if (value.tag == "epoch_loss") epochs.insert(event->step);
    }
  }
  return epochs;
}

bool ended_well(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 3 && std::string(argv[1]) == "--train") return train(argv[2]);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tandem_resume_" + std::to_string(getpid()));
  const std::string whole = folder / "whole", killed = folder / "killed";
  const char* program = "/proc/self/exe";
  if (!ended_well(start(program, whole))) return 1;

  int kills = 0;
  for (bool done = false; !done;) {
    const std::int64_t before = backups(killed);
    const pid_t process = start(program, killed);
    // Killed some backups later, wherever it is then; the third time it may go on to its end.
    while (kills < 2 && backups(killed) < before + 8 &&
           !std::filesystem::exists(killed + "/final.index")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (kills < 2) kill(process, SIGKILL);
    done = ended_well(process);
    if (!done) {
      ++kills;
      std::cout << "killed after backup " << backups(killed) << "\n";
    }
    if (kills > 3) return 1;
  }

  std::cout << "killed " << kills << " times\n";
  bool equal = true;
  const auto a = td::train::load_checkpoint(whole + "/final");
  const auto b = td::train::load_checkpoint(killed + "/final");
  for (const auto& [name, shape] : td::train::list_variables(whole + "/final")) {
    if (a.get_variable_to_dtype_map().at(name) != td::DType::kString)
      equal = equal && td::all_equal(a.get_tensor(name), b.get_tensor(name));
  }
  std::cout << (equal ? "the weights are equal to the bit" : "THE WEIGHTS DIFFER") << "\n";
  const std::set<std::int64_t> epochs = epochs_shown(killed);
  std::cout << "TensorBoard shows the loss of " << epochs.size() << " epochs, the last is "
            << (epochs.empty() ? -1 : *epochs.rbegin()) << "\n";
  std::filesystem::remove_all(folder);
  return equal && static_cast<int>(epochs.size()) == kEpochs ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
