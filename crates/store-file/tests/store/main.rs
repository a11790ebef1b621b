//! The stores in a file: the contracts, what a restart keeps, what a killed process keeps, and files that do not open.

#[cfg(test)]
mod contracts;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damaged_files;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod many_sessions;
#[cfg(test)]
mod older_format;
#[cfg(test)]
mod refused_files;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod session_crowd;
