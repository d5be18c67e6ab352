#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tandem/distribute/internal/rpc/local/descriptor.h"

/// The UNIX sockets by which tasks of one machine find each other. Their names are abstract: they
/// belong to the network namespace, as loopback's ports do, and end with the process that listens,
/// so that the server at "127.0.0.1:PORT" and that at the name made of it are the same.
namespace tandem::distribute {

/// The name at which the server listens that gRPC serves at `bind` ("127.0.0.1:0", where `port` is
/// the port that it got, or "unix:PATH"); empty if there can be none.
std::string local_name_of_server(std::string_view bind, int port);

/// The names at which a client may find the server of an address, likeliest first; none if the
/// address is not known to be of this machine.
std::vector<std::string> local_names_of_address(std::string_view address);

/// Listens without blocking; not open if the name is taken or there are no such sockets.
Descriptor listen_at(const std::string& name);

/// Connected, without blocking, to a process of the same user; else not open.
Descriptor connect_to(const std::string& name);

/// The next one to connect, if it is a process of the same user; else not open, and `errno` says
/// why: EAGAIN if there is none, EPERM for another user's.
Descriptor accept_from(const Descriptor& listening);

/// "local:PID" of the process at the other end.
std::string describe_peer(int socket);

}  // namespace tandem::distribute
