//! The rules of the repository: the places of things, their names, and the permissions of the functions.

mod costs;
mod derived;
mod files;
mod functions;
mod imports;
mod openapi;
mod permissions;
mod protection;
mod tidy;
