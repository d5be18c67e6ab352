// ends DEVICES MOMENT WAY: a program that ends in some WAY at some MOMENT. It exits with 0 and
// prints "ready" once it is at that moment; ends_test starts it with every combination.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tandem/tandem.h>

namespace {

namespace td = tandem;
using td::keras::Dense;
using td::keras::Input;
using td::keras::Sequential;
using td::keras::Verbose;

// Counts what threads do, so that a moment is reached by events and not by time.
class Progress {
 public:
  void step() { count_.fetch_add(1); }
  void wait_for(int n) const {
    while (count_.load() < n) std::this_thread::yield();
  }

 private:
  std::atomic<int> count_{0};
};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "wrong: %s\n", why.c_str());
  std::fflush(stderr);
  std::_Exit(3);
}

// The error that a misuse ends with is a typed one of these.
void expect_error(const std::function<void()>& misuse) {
  try {
    misuse();
  } catch (const td::CancelledError&) {
    return;
  } catch (const td::FailedPreconditionError&) {
    return;
  } catch (const std::exception& error) {
    fail(std::string("another error: ") + error.what());
  }
  fail("no error");
}

Sequential small_model() {
  return Sequential{Input({8}), Dense(16, {.activation = "relu"}), Dense(1)};
}

td::data::Dataset doubled(std::int64_t n, int calls) {
  return td::data::range(n).map([](td::Tensor x) { return x * 2; }, {.num_parallel_calls = calls});
}

bool g_shuts_down = false;  // the program calls td::shutdown(), which other threads notice

// The work of a detached thread. Nothing may reach it of a program that just ends.
void detach(std::function<void()> work) {
  std::thread([work = std::move(work)] {
    try {
      work();
    } catch (const td::Error& error) {
      const bool typed =
          error.code() == td::Code::kCancelled || error.code() == td::Code::kFailedPrecondition;
      if (!typed || !g_shuts_down) throw;
    }
  }).detach();
}

// ---- Moments: what is going on when the program ends. ----

void idle() { td::matmul(td::ones({64, 64}), td::ones({64, 64})).synchronize(); }

// Eager calls that devices have yet to run; they use a static object of the program.
std::vector<td::Tensor>& pending_results() {
  static std::vector<td::Tensor> results;
  return results;
}
void pending() {
  td::Tensor x = td::ones({32, 32});
  for (int i = 0; i < 40; ++i) {
    x = td::matmul(x, x) * 0.03;
    pending_results().push_back(td::linalg::svd(x).s);
  }
}

void detached_eager() {
  static auto* const progress = new Progress;
  for (int t = 0; t < 3; ++t) {
    detach([t] {
      for (std::int64_t i = 1;; ++i) {
        const std::int64_t n = 16 + (i * 7 + t) % 90;  // primitives for ever new sizes
        static_cast<void>(td::reduce_sum(td::matmul(td::ones({n, n}), td::ones({n, n}))));
        progress->step();
      }
    });
  }
  progress->wait_for(6);
}

// The program ends while its first products make what the later ones use.
void first_calls() {
  for (int t = 0; t < 2; ++t) {
    detach([t] {
      for (std::int64_t n = 100 + 60 * t;; ++n)
        static_cast<void>(td::reduce_sum(td::matmul(td::ones({n, n}), td::ones({n, n}))));
    });
  }
  std::this_thread::sleep_for(std::chrono::microseconds(getpid() * 37 % 6000));
}

void detached_predict() {
  static auto* const progress = new Progress;
  const Sequential model = small_model();
  for (int t = 0; t < 2; ++t) {
    detach([model, t] {
      for (std::int64_t i = 1;; ++i) {
        model.predict(td::ones({1 + (i * 3 + t) % 40, 8}), {.verbose = Verbose::kSilent});
        progress->step();
      }
    });
  }
  progress->wait_for(4);
}

void detached_map() {
  static auto* const progress = new Progress;
  for (int t = 0; t < 2; ++t) {
    detach([] {
      for (;;) {
        for (const auto& element : doubled(100, 2).batch(10)) {
          static_cast<void>(element);
          progress->step();
        }
      }
    });
  }
  progress->wait_for(4);
}

// Detached threads in functions: a long loop, and a dequeue that nothing will answer.
void detached_loop() {
  static auto* const progress = new Progress;
  detach([] {
    const auto loop = td::function([](td::Tensor x) {
      return td::while_loop([](const td::Tensor& v) { return v < 1e30; },
                            [](const td::Tensor& v) { return v * 1.0 + 1e-30; }, x);
    });
    progress->step();
    static_cast<void>(loop(td::Tensor(1.0)));
  });
  progress->wait_for(1);
}

// A service whose destructor, among the static ones, stops its thread and waits for it.
class Service {
 public:
  Service() : thread_([this] { work(); }) { progress_.wait_for(2); }
  ~Service() {
    stop_ = true;
    thread_.join();
  }

 private:
  void work() {
    try {
      for (std::int64_t i = 1; !stop_; ++i) {
        static_cast<void>(model_(td::ones({1 + i % 30, 8})));
        progress_.step();
      }
    } catch (const td::CancelledError&) {
    } catch (const td::FailedPreconditionError&) {  // after td::shutdown()
    }
  }
  const Sequential model_ = small_model();
  std::atomic<bool> stop_{false};
  Progress progress_;
  std::thread thread_;
};
void joined_by_static() { static const Service service; }

struct Globals {
  std::optional<Sequential> model;
  std::optional<td::data::Iterator> iterator;
  std::optional<td::Variable> variable;
  std::optional<td::GradientTape> tape;
  td::Tensor tensor;
};
Globals g_globals;  // made before anything of the library is

void globals() {
  g_globals.model.emplace(small_model());
  g_globals.tensor = (*g_globals.model)(td::ones({4, 8}));
  g_globals.iterator.emplace(doubled(1000000, 2).prefetch(4).iterator());
  td::data::Element element;
  g_globals.iterator->next(element);
  g_globals.variable.emplace(1.0f);
  g_globals.tape.emplace();
  static_cast<void>(*g_globals.variable * 2.0);
}

void thread_locals() {
  thread_local Globals mine;
  mine.model.emplace(small_model());
  mine.iterator.emplace(doubled(1000, 2).iterator());
  td::data::Element element;
  mine.iterator->next(element);
  mine.tape.emplace();
  mine.variable.emplace(2.0f);
  mine.tensor = *mine.variable * 2.0;
  std::thread([] {
    thread_local Globals theirs;
    theirs.model.emplace(small_model());
    theirs.tape.emplace();
    theirs.tensor = (*theirs.model)(td::ones({2, 8}));
  }).join();
}

// Computes when static objects are destroyed.
struct ComputesLate {
  ~ComputesLate() {
    try {
      const td::Tensor y = td::reduce_sum(td::matmul(td::ones({24, 24}), td::ones({24, 24})));
      if (y.item<float>() != 24.0f * 24 * 24) fail("a late sum");
    } catch (const td::FailedPreconditionError&) {  // after td::shutdown()
    }
  }
};
ComputesLate* g_late = nullptr;
void static_computes() {
  static ComputesLate late;
  g_late = &late;
  idle();
}

td::Runtime::Options other_devices() {
  td::Runtime::Options options;
  options.intra_op_threads = 2;
  options.inter_op_threads = 2;
  return options;
}

void runtime_computing() {
  Progress progress, in_scope;
  auto runtime = std::make_unique<td::Runtime>(other_devices());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&progress, &in_scope, t, r = runtime.get()] {
      const td::RuntimeScope scope(*r);
      in_scope.step();
      const auto f = td::function([](td::Tensor x) { return td::matmul(x, x) * 0.01; });
      progress.step();
      expect_error([&] {
        for (td::Tensor x = td::ones({32, 32});; progress.step()) {
          x = t == 0 ? f(x) : td::matmul(x, x) * 0.03;
        }
      });
    });
  }
  in_scope.wait_for(3);
  progress.wait_for(12);
  runtime.reset();
  for (std::thread& thread : threads) thread.join();
}

void iterator_outlives_runtime() {
  for (int calls : {1, 2}) {
    std::optional<td::data::Iterator> iterator;
    {
      td::Runtime runtime(other_devices());
      const td::RuntimeScope scope(runtime);
      iterator.emplace(doubled(100, calls).iterator());
      td::data::Element element;
      iterator->next(element);
    }
    td::data::Element element;
    std::int64_t wanted = 1;
    try {
      for (; iterator->next(element); ++wanted) {
        if (element[0].item<std::int64_t>() != 2 * wanted) fail("an element was lost");
      }
      if (wanted != 100) fail("elements were lost");
    } catch (const td::CancelledError&) {
    }
    static std::optional<td::data::Iterator> kept;  // destroyed with the static objects
    kept.emplace(std::move(*iterator));
  }
}

void scope_outlives() {
  auto runtime = std::make_unique<td::Runtime>(other_devices());
  auto outer = std::make_unique<td::RuntimeScope>(*runtime);
  td::Runtime second(other_devices());
  auto inner = std::make_unique<td::RuntimeScope>(second);
  outer.reset();  // in the wrong order
  static_cast<void>(td::ones({2}) + 1);
  inner.reset();
  outer = std::make_unique<td::RuntimeScope>(*runtime);
  runtime.reset();
  expect_error([] { static_cast<void>(td::ones({4}) + 1); });
  expect_error([] { td::function([](td::Tensor x) { return x + 1; })(td::Tensor(1.0)); });
  outer.reset();
}

void tapes() {
  const td::Tensor x = td::ones({3});
  auto first = std::make_unique<td::GradientTape>();
  first->watch(x);
  auto second = std::make_unique<td::GradientTape>();
  second->watch(x);
  const td::Tensor y = x * x;
  first.reset();
  std::thread([tape = std::move(second)] {}).join();
  static_cast<void>(x * 2.0);  // recorded by no tape that is gone
  static std::optional<td::GradientTape> kept;
  kept.emplace();
  kept->watch(x);
  static_cast<void>(x * y);
}

void shut_down_early() {
  idle();
  td::shutdown();
  td::shutdown();
  const td::Tensor kept(1.0f);
  expect_error([&] { static_cast<void>(kept + 1.0f); });
  td::Runtime runtime(other_devices());
  const td::RuntimeScope scope(runtime);
  const td::DeviceScope host("/CPU:0");  // some devices only take time
  if ((kept + 1.0f).item<float>() != 2) fail("a runtime after td::shutdown()");
}

// ---- Ways to end. ----

int leave(const std::string& way) {
  if (way == "exit") std::exit(0);
  if (way == "shutdown") {
    td::shutdown();
  } else if (way == "exit_in_thread") {
    std::thread([] { std::exit(0); }).join();
  } else if (way == "exit_in_map") {
    // In the middle of a function that the library called.
    const auto end_here = [](td::Tensor x) {
      std::exit(0);
      return x;
    };
    try {
      for (const auto& element : td::data::range(4).map(end_here)) static_cast<void>(element);
    } catch (const td::FailedPreconditionError&) {  // after td::shutdown()
    }
  } else if (way != "return") {
    fail("no way " + way);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  static const std::map<std::string, void (*)()> moments = {
      {"idle", idle},
      {"pending", pending},
      {"detached_eager", detached_eager},
      {"first_calls", first_calls},
      {"detached_predict", detached_predict},
      {"detached_map", detached_map},
      {"detached_loop", detached_loop},
      {"joined_by_static", joined_by_static},
      {"globals", globals},
      {"thread_locals", thread_locals},
      {"static_computes", static_computes},
      {"runtime_computing", runtime_computing},
      {"iterator_outlives_runtime", iterator_outlives_runtime},
      {"scope_outlives", scope_outlives},
      {"tapes", tapes},
      {"shut_down_early", shut_down_early},
  };
  const std::string devices = argv[1];
  g_shuts_down = argv[3] == std::string("shutdown");
  if (devices != "cpu") setenv("TANDEM_EMULATE", devices.c_str(), 1);
  try {
    moments.at(argv[2])();
  } catch (const std::exception& error) {
    fail(error.what());
  }
  std::puts("ready");
  std::fflush(stdout);
  return leave(argv[3]);
}
